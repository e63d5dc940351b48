#include "app/cli/print_json.h"

#include <cstddef>
#include <cstdio>
#include <string>

namespace sdtune::app {
namespace {

// Names and texts of files may hold what a terminal takes for a command. dump() writes C0 out, and leaves DEL and C1
// (U+0080 to U+009F) as they are.
std::string with_controls_escaped(const std::string& json) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(json.size());
  for (std::size_t at = 0; at < json.size(); ++at) {
    auto byte = static_cast<unsigned char>(json[at]);
    if (byte == 0xc2 && at + 1 < json.size() && static_cast<unsigned char>(json[at + 1]) <= 0x9f) {
      byte = static_cast<unsigned char>(json[++at]);  // the letter's own number
    } else if (byte != 0x7f) {
      text += json[at];
      continue;
    }
    text.append("\\u00").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 0xf]);
  }
  return text;
}

}  // namespace

void print_json(const Json& report) {
  std::puts(with_controls_escaped(report.dump(2, ' ', false, Json::error_handler_t::replace)).c_str());
}

}  // namespace sdtune::app
