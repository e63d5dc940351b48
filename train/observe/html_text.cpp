#include "train/observe/html_text.h"

#include <cstddef>
#include <system_error>

#include "model/base/error.h"
#include "model/files/base64.h"
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
