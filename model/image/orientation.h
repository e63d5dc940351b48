// The EXIF orientation: phones store the sensor's rows and say how to turn them.
#pragma once

#include <optional>
#include <string_view>

#include "model/base/image.h"

namespace sdtune::model {

// The orientation (1 to 8) in an EXIF TIFF block (without the "Exif" prefix); 1 when it is out of range, unset when it
// is absent or the block is damaged: an image is not refused for its notes.
std::optional<int> find_exif_orientation(std::string_view tiff_block);

// The same, 1 where it is absent.
inline int exif_orientation(std::string_view tiff_block) {
  return find_exif_orientation(tiff_block).value_or(1);
}

// The image as it is to be seen. 1 as it is, 2 mirrored left-right, 3 turned by 180 degrees, 4 mirrored top-bottom,
// 5 transposed, 6 turned clockwise by 90, 7 transposed across the other diagonal, 8 turned counter-clockwise by 90.
Image oriented(Image stored, int orientation);

// Mirrored left-right.
Image mirrored(Image image);

}  // namespace sdtune::model
