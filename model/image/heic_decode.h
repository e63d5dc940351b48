// HEIC pictures, as phones make them, decoded by libheif where the system has it. It is looked for when the first such
// picture comes and never linked: its encoders' licences and its size are not sdtune's to bring.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sdtune::model {

// Whether the bytes begin as a HEIC or HEIF picture does (AVIF is not meant).
bool is_heic(std::string_view bytes);

// Whether libheif is here.
bool can_decode_heic();
// Whether a shared library of that name has what decoding needs.
bool is_heic_library(const std::string& name);

struct HeicSize {
  std::int64_t width = 0;  // px, as seen: libheif turns pictures as their boxes ask
  std::int64_t height = 0;
};

// Of the main picture, before any pixel is decoded. Throws DataError naming `where`: no libheif here, or what libheif
// says of the file.
HeicSize read_heic_size(std::string_view bytes, const std::string& where);

struct HeicPixels {
  HeicSize size;
  bool has_alpha = false;
  std::vector<std::uint8_t> rgba;  // rows without padding; alpha 255 where the picture has none
};

// Throws DataError as read_heic_size does, also for compressed data that is damaged or cut.
HeicPixels decode_heic(std::string_view bytes, const std::string& where);

}  // namespace sdtune::model
