// WebP files (RFC 9649), by libwebp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/image/decoded_pixels.h"

namespace sdtune::model {

struct WebpHeader {
  std::int64_t width = 0;   // px
  std::int64_t height = 0;  // px
  bool animated = false;
  std::string exif;  // the TIFF block of the EXIF chunk; empty when there is none
};

// `bytes` begins with "RIFF", size, "WEBP". Both throw DataError naming `where` for a file that is cut off or damaged.
WebpHeader read_webp_header(std::string_view bytes, const std::string& where);
DecodedPixels decode_webp(std::string_view bytes, const std::string& where);

}  // namespace sdtune::model
