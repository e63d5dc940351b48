#include "model/base/printable.h"

#include <cstddef>

namespace sdtune {
namespace {

// The bytes of the control character at `at`: 0 for none, 1 for C0 and DEL, 2 for C1 (U+0080 to U+009F in UTF-8).
std::size_t control_length(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x20 || byte == 0x7f) return 1;
  if (byte != 0xc2 || at + 1 == text.size()) return 0;
  const auto next = static_cast<unsigned char>(text[at + 1]);
  return next >= 0x80 && next <= 0x9f ? 2 : 0;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = control_length(text, at);
    if (length == 0) {
      out += text[at++];
      continue;
    }
    for (std::size_t i = 0; i < length; ++i, ++at) {
      const auto byte = static_cast<unsigned char>(text[at]);
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 0xf];
    }
  }
  return out;
}

}  // namespace sdtune
