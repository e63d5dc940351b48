#include "model/image/png_orientation.h"

#include <zlib.h>

#include <cstddef>
#include <optional>

#include "model/image/orientation.h"

namespace sdtune::model {

namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kProfileKey = "Raw profile type exif";
constexpr std::string_view kXmpKey = "XML:com.adobe.xmp";
constexpr std::size_t kMostText = std::size_t{1} << 20;  // bytes of a compressed one, as in Pillow

// Empty where it is damaged or too long: an image is not refused for its notes.
std::string inflated(std::string_view data) {
  std::string text(kMostText, '\0');
  uLongf size = kMostText;
  const int status = ::uncompress(reinterpret_cast<Bytef*>(text.data()), &size,
                                  reinterpret_cast<const Bytef*>(data.data()), static_cast<uLong>(data.size()));
  if (status != Z_OK) return {};
  text.resize(size);
  return text;
}

// What stands behind the key of a chunk with a text; empty where it cannot be read.
std::string text_of(std::string_view type, std::string_view rest) {
  if (type == "tEXt") return std::string(rest);
  if (type == "zTXt") return rest.empty() ? std::string() : inflated(rest.substr(1));  // behind the method
  if (rest.size() < 2) return {};
  const std::size_t language_end = rest.find('\0', 2);  // behind flag and method
  if (language_end == std::string_view::npos) return {};
  const std::size_t key_end = rest.find('\0', language_end + 1);
  if (key_end == std::string_view::npos) return {};
  const std::string_view text = rest.substr(key_end + 1);
  return rest[0] != 0 ? inflated(text) : std::string(text);
}

bool has_key(std::string_view content, std::string_view key) {
  return content.size() > key.size() && content.starts_with(key) && content[key.size()] == '\0';
}

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

// ImageMagick's profile: an empty line, its kind, its length, and lines of hexadecimal digits. Empty where it is none.
std::string profile_bytes(std::string_view text) {
  for (int line = 0; line < 3; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  std::string bytes;
  int high = -1;
  for (const char letter : text) {
    if (letter == '\n' || letter == '\r' || letter == ' ') continue;
    const int value = hex_value(letter);
    if (value < 0) return {};
    if (high >= 0) bytes += static_cast<char>(high * 16 + value);
    high = high >= 0 ? -1 : value;
  }
  return bytes;
}

std::string_view without_prefix(std::string_view exif) {
  constexpr std::string_view kPrefix = "Exif\0\0"sv;
  while (exif.starts_with(kPrefix)) exif.remove_prefix(kPrefix.size());
  return exif;
}

// tiff:Orientation="6", or as an element.
int xmp_orientation(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (std::size_t at = xmp.find(kName); at != std::string_view::npos; at = xmp.find(kName, at + 1)) {
    std::string_view rest = xmp.substr(at + kName.size());
    const std::size_t mark = rest.starts_with("=\"") ? 2 : rest.starts_with(">") ? 1 : 0;
    if (mark == 0 || rest.size() == mark || rest[mark] < '0' || rest[mark] > '9') continue;
    const int value = rest[mark] - '0';
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

}  // namespace

void PngOrientation::take(std::string_view type, std::string_view content) {
  if (type == "eXIf") exif_ = content;
  if (type != "tEXt" && type != "zTXt" && type != "iTXt") return;
  if (has_key(content, kProfileKey)) profile_ = text_of(type, content.substr(kProfileKey.size() + 1));
  if (has_key(content, kXmpKey)) xmp_ = text_of(type, content.substr(kXmpKey.size() + 1));
}

int PngOrientation::orientation() const {
  const std::string profile = exif_.empty() ? profile_bytes(profile_) : std::string();
  const std::string_view exif = exif_.empty() ? std::string_view(profile) : exif_;
  const std::optional<int> found = find_exif_orientation(without_prefix(exif));
  return found ? *found : xmp_orientation(xmp_);
}

}  // namespace sdtune::model
