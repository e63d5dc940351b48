// The RIFF chunks of a WebP file (RFC 9649).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sdtune::model {

struct WebpFile {
  std::int64_t width = 0;   // px
  std::int64_t height = 0;  // px
  bool animated = false;
  std::string_view exif;  // the TIFF block of the EXIF chunk; empty when there is none
};

// Walks all chunks. `bytes` begins with "RIFF", size, "WEBP". Throws DataError naming `where` when the file ends early,
// or holds no picture.
WebpFile read_webp_chunks(std::string_view bytes, const std::string& where);

}  // namespace sdtune::model
