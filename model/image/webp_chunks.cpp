#include "model/image/webp_chunks.h"

#include <cstddef>

#include "model/base/error.h"
#include "model/image/byte_order.h"

namespace sdtune::model {

namespace {

using std::string_view_literals::operator""sv;

constexpr std::size_t kRiffHeader = 12;
constexpr std::size_t kChunkHeader = 8;

// Lossy: a VP8 key frame, 14 bits a side behind the start code 9d 01 2a.
void read_lossy_size(WebpFile& file, std::string_view content, const std::string& where) {
  if (content.size() < 10 || content.substr(3, 3) != "\x9d\x01\x2a"sv) {
    throw DataError(where, "damaged WebP: its picture data has no start code");
  }
  file.width = little_endian(content, 6, 2) & 0x3FFF;
  file.height = little_endian(content, 8, 2) & 0x3FFF;
}

// Lossless: 14 bits a side, less one, behind the mark 0x2f.
void read_lossless_size(WebpFile& file, std::string_view content, const std::string& where) {
  if (content.size() < 5 || content[0] != '\x2f') {
    throw DataError(where, "damaged WebP: its picture data has no start mark");
  }
  const std::uint32_t bits = little_endian(content, 1, 4);
  file.width = (bits & 0x3FFF) + 1;
  file.height = ((bits >> 14) & 0x3FFF) + 1;
}

void read_chunk(WebpFile& file, std::string_view type, std::string_view content, const std::string& where) {
  if (type == "VP8 ") read_lossy_size(file, content, where);
  if (type == "VP8L") read_lossless_size(file, content, where);
  if (type == "ANIM" || type == "ANMF") file.animated = true;
  if (type == "EXIF") {
    file.exif = content;
    // Some writers copy JPEG's prefix in front of the TIFF block.
    if (file.exif.starts_with("Exif\0\0"sv)) file.exif.remove_prefix(6);
  }
}

}  // namespace

WebpFile read_webp_chunks(std::string_view bytes, const std::string& where) {
  const std::size_t claimed = std::size_t{little_endian(bytes, 4, 4)} + 8;
  if (bytes.size() < claimed || claimed < kRiffHeader) {
    throw DataError(where, "truncated WebP: it ends after " + std::to_string(bytes.size()) + " of " +
                               std::to_string(claimed) + " bytes");
  }
  const std::string_view riff = bytes.substr(0, claimed);
  WebpFile file;
  for (std::size_t at = kRiffHeader; at + kChunkHeader <= riff.size();) {
    const std::size_t length = little_endian(riff, at + 4, 4);
    const std::string_view type = riff.substr(at, 4);
    if (riff.size() - at - kChunkHeader < length) {
      throw DataError(where, "damaged WebP: chunk " + std::string(type) + " at byte " + std::to_string(at) +
                                 " is longer than the file");
    }
    read_chunk(file, type, riff.substr(at + kChunkHeader, length), where);
    at += kChunkHeader + length + (length & 1);  // chunks begin at even places
  }
  if (!file.animated && file.width == 0) throw DataError(where, "damaged WebP: it holds no picture");
  return file;
}

}  // namespace sdtune::model
