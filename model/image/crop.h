// From a photo of any shape to a training square: torchvision's Resize(shorter side) and then CenterCrop or RandomCrop.
#pragma once

#include <cstdint>

#include "model/base/image.h"
#include "model/image/resample.h"

namespace sdtune::model {

// What happens to one photo. SDXL is told these numbers too (time_ids: original size, crop corner, target size).
struct CropPlan {
  std::int64_t resized_width = 0;   // px, after the shorter side became the target's
  std::int64_t resized_height = 0;  // px
  std::int64_t left = 0;            // px, the corner of the square in the resized picture
  std::int64_t top = 0;
  std::int64_t side = 0;  // px of the square

  // Number of places of the square on each axis, at least 1: left < free_columns(), top < free_rows().
  std::int64_t free_columns() const { return resized_width - side + 1; }
  std::int64_t free_rows() const { return resized_height - side + 1; }
};

// The middle square. The longer side is truncated, and half pixels round to even, as torchvision does.
CropPlan center_crop(std::int64_t width, std::int64_t height, std::int64_t side);

// The square with its corner at (left, top). Throws DataError when it does not lie inside.
Image cut_square(const Image& image, std::int64_t left, std::int64_t top, std::int64_t side);

// The square of `plan` out of a photo of the size that the plan was made for.
Image cropped(const Image& photo, const CropPlan& plan, Filter filter);

}  // namespace sdtune::model
