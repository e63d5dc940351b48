// The chunks of a PNG file (ISO/IEC 15948), with their checksums compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sdtune::model {

struct PngFile {
  std::int64_t width = 0;         // px
  std::int64_t height = 0;        // px
  std::int64_t frames = 1;        // of an animated PNG; else 1
  int bit_depth = 0;              // 1, 2, 4, 8, 16: of a channel
  int color_type = 0;             // 0 grey, 2 RGB, 3 palette, 4 grey + alpha, 6 RGB + alpha
  std::optional<int> grey_clear;  // the grey level that is transparent (colour type 0 with tRNS)
  std::string_view exif;          // the eXIf chunk; empty when there is none
  std::string_view bytes;         // the whole file, which the views above point into
};

// Walks all chunks. `bytes` begins with the PNG mark. Throws DataError naming `where`, the chunk and its place when the
// file ends early, a checksum is wrong, or a chunk that must be there is missing.
PngFile read_png_chunks(std::string_view bytes, const std::string& where);

// The same picture with nothing but the chunks that hold pixels: without colour profiles, texts and times, so a decoder
// neither complains about them nor has to be trusted with them.
std::string bare_png(const PngFile& file);

}  // namespace sdtune::model
