#include "train/observe/html_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include "model/base/error.h"
#include "model/base/file_system.h"

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
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) word = word << 8 | (k < count ? static_cast<std::uint8_t>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string html_picture(const std::filesystem::path& png, const std::string& description) {
  std::error_code status;
  if (!std::filesystem::is_regular_file(png, status)) return {};
  try {
    std::string tag = "<img alt=\"";
    tag.append(html_escaped(description)).append("\" src=\"data:image/png;base64,").append(base64(read_file(png)));
    return tag.append("\">\n");
  } catch (const DataError&) {
    return {};  // the page is worth having without it
  }
}

}  // namespace sdtune::train
