#include "model/image/png_chunks.h"

#include <zlib.h>

#include "model/base/error.h"
#include "model/image/byte_order.h"
#include "model/image/png_orientation.h"

namespace sdtune::model {

namespace {

constexpr std::size_t kMarkSize = 8;
constexpr std::size_t kFrameSize = 12;  // length, type and checksum around a chunk's content

struct Chunk {
  std::string_view type;
  std::string_view content;
  std::string_view whole;  // with its length, type and checksum
};

// The chunk at `at`, checked.
Chunk read_chunk(std::string_view bytes, std::size_t at, const std::string& where) {
  const std::string place = " at byte " + std::to_string(at);
  if (bytes.size() - at < kFrameSize) {
    throw DataError(where, "truncated PNG: it ends" + place + " without its end mark (IEND)");
  }
  const std::size_t length = big_endian(bytes, at, 4);
  const std::string_view type = bytes.substr(at + 4, 4);
  for (const char letter : type) {
    if ((letter < 'A' || letter > 'Z') && (letter < 'a' || letter > 'z')) {
      throw DataError(where, "damaged PNG: no chunk" + place);
    }
  }
  const std::string name(type);
  if (bytes.size() - at - kFrameSize < length) {
    throw DataError(where, "truncated PNG: it ends inside the " + name + " chunk" + place);
  }
  const std::string_view checked = bytes.substr(at + 4, 4 + length);
  const auto sum = ::crc32_z(0, reinterpret_cast<const Bytef*>(checked.data()), checked.size());
  if (sum != big_endian(bytes, at + 8 + length, 4)) {
    throw DataError(where, "damaged PNG: the checksum of the " + name + " chunk" + place + " is wrong");
  }
  return {type, checked.substr(4), bytes.substr(at, kFrameSize + length)};
}

void read_header(PngFile& file, const Chunk& chunk, const std::string& where) {
  if (chunk.type != "IHDR" || chunk.content.size() != 13) {
    throw DataError(where, "damaged PNG: it does not begin with a header (IHDR)");
  }
  file.width = big_endian(chunk.content, 0, 4);
  file.height = big_endian(chunk.content, 4, 4);
}

}  // namespace

PngFile read_png_chunks(std::string_view bytes, const std::string& where) {
  PngFile file;
  PngOrientation orientation;
  bool has_pixels = false;
  std::size_t at = kMarkSize;
  for (bool first = true;; first = false) {
    const Chunk chunk = read_chunk(bytes, at, where);
    if (first) read_header(file, chunk, where);
    if (chunk.type == "acTL" && chunk.content.size() >= 4) file.frames = big_endian(chunk.content, 0, 4);
    orientation.take(chunk.type, chunk.content);
    has_pixels = has_pixels || chunk.type == "IDAT";
    at += chunk.whole.size();
    if (chunk.type == "IEND") break;
  }
  file.orientation = orientation.orientation();
  if (!has_pixels) throw DataError(where, "damaged PNG: it holds no pixels (no IDAT chunk)");
  return file;
}

}  // namespace sdtune::model
