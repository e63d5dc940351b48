// PNG files to pixels, by libpng.
#pragma once

#include <string>
#include <string_view>

#include "model/image/decoded_pixels.h"

namespace sdtune::model {

// Palettes, grey levels and single transparent colours become RGBA; of 16 bits the upper 8 are taken, as Pillow does.
// Colour profiles and gamma are left alone. `bytes` passed read_png_chunks. Throws DataError naming `where` for
// compressed data that is damaged.
DecodedPixels decode_png(std::string_view bytes, const std::string& where);

}  // namespace sdtune::model
