#include "model/image/jpeg_segments.h"

#include "model/base/error.h"
#include "model/image/byte_order.h"

namespace sdtune::model {

namespace {

using std::string_view_literals::operator""sv;

constexpr std::uint32_t kStartOfScan = 0xDA;
constexpr std::uint32_t kEndOfImage = 0xD9;
constexpr std::uint32_t kApp1 = 0xE1;
constexpr std::string_view kExifPrefix = "Exif\0\0"sv;

// SOF0 to SOF15, without DHT, JPG and DAC, which lie among them.
bool is_start_of_frame(std::uint32_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

// RST0 to RST7, SOI and TEM stand alone, without a length.
bool has_no_length(std::uint32_t marker) {
  return (marker >= 0xD0 && marker <= 0xD8) || marker == 0x01;
}

}  // namespace

JpegHeader read_jpeg_header(std::string_view bytes, const std::string& where) {
  JpegHeader header;
  std::size_t at = 2;
  while (at + 4 <= bytes.size()) {
    if (bytes[at] == 0) {  // padding, which some cameras write between segments
      ++at;
      continue;
    }
    if (static_cast<unsigned char>(bytes[at]) != 0xFF) {
      throw DataError(where, "damaged JPEG: no marker at byte " + std::to_string(at));
    }
    const std::uint32_t marker = big_endian(bytes, at + 1, 1);
    if (marker == 0xFF || has_no_length(marker)) {  // 0xFF: a fill byte
      at += marker == 0xFF ? 1 : 2;
      continue;
    }
    if (marker == kStartOfScan || marker == kEndOfImage) break;
    const std::size_t length = big_endian(bytes, at + 2, 2);
    if (length < 2) throw DataError(where, "damaged JPEG: segment without content at byte " + std::to_string(at));
    const std::string_view segment = bytes.substr(at + 4);
    if (segment.size() < length - 2) break;
    const std::string_view content = segment.substr(0, length - 2);
    if (is_start_of_frame(marker) && content.size() >= 6) {
      header.height = big_endian(content, 1, 2);
      header.width = big_endian(content, 3, 2);
      // EXIF comes before the frame: nothing behind it matters here.
      return header;
    }
    if (marker == kApp1 && header.exif.empty() && content.starts_with(kExifPrefix)) {
      header.exif = content.substr(kExifPrefix.size());
    }
    at += 2 + length;
  }
  throw DataError(where, "truncated JPEG: it ends within its header (" + std::to_string(bytes.size()) + " bytes)");
}

}  // namespace sdtune::model
