// HEIC images, as phones make them, decoded by libheif where the system has it. It is looked for when the first such
// image comes and never linked: its encoders' licences and its size are not sdtune's to bring.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/image/decoded_pixels.h"

namespace sdtune::model {

// Whether the bytes begin as a HEIC or HEIF image does (AVIF is not meant).
bool is_heic(std::string_view bytes);

// Whether libheif is here.
bool can_decode_heic();
// Whether a shared library of that name has what decoding needs.
bool is_heic_library(const std::string& name);

struct HeicSize {
  std::int64_t width = 0;  // px, as seen: libheif turns images as their boxes ask
  std::int64_t height = 0;
};

// Of the main image, before any pixel is decoded. Throws DataError naming `where`: no libheif here, or what libheif
// says of the file.
HeicSize read_heic_size(std::string_view bytes, const std::string& where);

// Throws DataError as read_heic_size does, also for compressed data that is damaged or cut.
DecodedPixels decode_heic(std::string_view bytes, const std::string& where);

}  // namespace sdtune::model
