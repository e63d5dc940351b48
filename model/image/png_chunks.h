// The chunks of a PNG file (ISO/IEC 15948), with their checksums compared. By hand, because libpng neither names the
// place of a fault nor knows animated files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sdtune::model {

struct PngFile {
  std::int64_t width = 0;   // px
  std::int64_t height = 0;  // px
  std::int64_t frames = 1;  // of an animated PNG; else 1
  int orientation = 1;      // EXIF, 1 to 8
};

// Walks all chunks. `bytes` begins with the PNG mark. Throws DataError naming `where`, the chunk and its place when the
// file ends early, a checksum is wrong, or a chunk that must be there is missing.
PngFile read_png_chunks(std::string_view bytes, const std::string& where);

}  // namespace sdtune::model
