// What a small version of an image says about it: whether it is sharp, and whether another one shows the same.
#pragma once

#include <array>
#include <cstdint>

#include "model/base/image.h"

namespace sdtune::model {

struct ImageQuality {
  // 255 signs of the lowest frequencies (a discrete cosine transform of 64 x 64 grey levels, 16 x 16 of it without the
  // mean, each against the median): changes of size, compression and brightness flip few of them.
  std::array<std::uint64_t, 4> hash{};
  // How fine its sharpest parts are: the variance of the Laplacian in the fourth sharpest of 6 x 6 tiles, over the
  // variance of all grey levels. A blurred background costs nothing, blur everywhere does.
  double sharpness = 0;
  double saturation = 0;  // mean of (largest - smallest channel) / 255
};

// Of an image whose longer side is about 512 px: sharpness depends on the size. Throws DataError for an empty one.
ImageQuality image_signs(const Image& preview);

// Signs that differ, 0 to 255. Photos of one person differ in 70 and more, copies in 15 and less.
int hash_distance(const ImageQuality& left, const ImageQuality& right);

}  // namespace sdtune::model
