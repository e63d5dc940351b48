#include "model/image/png_text.h"

#include <cstddef>

#include "model/image/byte_order.h"

namespace sdtune::model {
namespace {

constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";
constexpr std::size_t kFrame = 12;  // of a chunk: length, type, checksum

// tEXt is Latin-1 (ISO 8859-1), whose numbers are Unicode's.
std::string utf8_of_latin1(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      result += c;
    } else {
      result += static_cast<char>(0xC0 | byte >> 6);
      result += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return result;
}

// What follows the key of an iTXt chunk: two bytes of compression, language, translated key, text; nothing where the
// text is compressed.
std::optional<std::string> international_text(std::string_view rest) {
  if (rest.size() < 2 || rest[0] != 0) return std::nullopt;
  const std::size_t language_end = rest.find('\0', 2);
  if (language_end == std::string_view::npos) return std::nullopt;
  const std::size_t key_end = rest.find('\0', language_end + 1);
  if (key_end == std::string_view::npos) return std::nullopt;
  return std::string(rest.substr(key_end + 1));
}

}  // namespace

// By hand and not by libpng: only what stands before the pixels is walked, and damaged files must pass.
std::optional<std::string> find_png_text(std::string_view bytes, std::string_view key) {
  if (!bytes.starts_with(kSignature)) return std::nullopt;
  for (std::size_t at = kSignature.size(); at + kFrame <= bytes.size();) {
    const std::size_t length = big_endian(bytes, at, 4);
    const std::string_view type = bytes.substr(at + 4, 4);
    if (type == "IDAT" || length > bytes.size() - at - kFrame) return std::nullopt;
    const std::string_view data = bytes.substr(at + 8, length);
    const bool is_named = data.size() > key.size() && data.starts_with(key) && data[key.size()] == '\0';
    if (type == "tEXt" && is_named) return utf8_of_latin1(data.substr(key.size() + 1));
    if (type == "iTXt" && is_named) {
      if (std::optional<std::string> text = international_text(data.substr(key.size() + 1))) return text;
    }
    at += kFrame + length;
  }
  return std::nullopt;
}

bool is_made_by_sdtune(std::string_view bytes) {
  return find_png_text(bytes, "Software").value_or("").starts_with("sdtune");
}

}  // namespace sdtune::model
