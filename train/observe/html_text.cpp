#include "train/observe/html_text.h"

#include <openssl/evp.h>

#include <cstddef>
#include <system_error>

#include "model/base/error.h"
#include "model/files/file_system.h"

namespace sdtune::train {

std::string html_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL ends it with a zero
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::string html_image(const std::filesystem::path& png, const std::string& description) {
  if (!is_file(png)) return {};
  try {
    std::string tag = "<img alt=\"";
    tag.append(html_escaped(description)).append("\" src=\"data:image/png;base64,").append(base64(read_file(png)));
    return tag.append("\">\n");
  } catch (const DataError&) {
    return {};  // the page is worth having without it
  }
}

}  // namespace sdtune::train
