#include "model/image/png_text.h"

#include <cstddef>
#include <fstream>

#include "model/image/byte_order.h"

namespace sdtune::model {
namespace {

constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";
constexpr std::size_t kFrame = 12;             // of a chunk: length, type, checksum
constexpr std::size_t kHeadBytes = 64 * 1024;  // our texts stand before the pixels

}  // namespace

std::optional<std::string> find_png_text(std::string_view bytes, std::string_view key) {
  if (!bytes.starts_with(kSignature)) return std::nullopt;
  for (std::size_t at = kSignature.size(); at + kFrame <= bytes.size();) {
    const std::size_t length = big_endian(bytes, at, 4);
    const std::string_view type = bytes.substr(at + 4, 4);
    if (type == "IDAT" || length > bytes.size() - at - kFrame) return std::nullopt;
    const std::string_view data = bytes.substr(at + 8, length);
    const bool is_named = data.size() > key.size() && data.starts_with(key) && data[key.size()] == '\0';
    if (type == "tEXt" && is_named) return std::string(data.substr(key.size() + 1));
    at += kFrame + length;
  }
  return std::nullopt;
}

bool is_made_by_sdtune(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string head(kHeadBytes, '\0');
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(stream.gcount()));
  return find_png_text(head, "Software").value_or("").starts_with("sdtune");
}

}  // namespace sdtune::model
