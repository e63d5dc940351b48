// From a photo of any shape to the rectangle that is trained on: resized until it just covers it, then cut. For a
// square that is torchvision's Resize(shorter side) and then CenterCrop or RandomCrop.
#pragma once

#include <cstdint>

#include "model/base/image.h"
#include "model/image/resample.h"

namespace sdtune::model {

// What happens to one photo. SDXL is conditioned on these numbers (time_ids: original size, crop corner, target size).
struct CropPlan {
  std::int64_t resized_width = 0;   // px, just covering width x height
  std::int64_t resized_height = 0;  // px
  std::int64_t left = 0;            // px, the corner of the rectangle in the resized image
  std::int64_t top = 0;
  std::int64_t width = 0;  // px of the rectangle
  std::int64_t height = 0;

  // Number of places of the rectangle on each axis, at least 1: left < free_columns(), top < free_rows().
  std::int64_t free_columns() const { return resized_width - width + 1; }
  std::int64_t free_rows() const { return resized_height - height + 1; }

  bool operator==(const CropPlan&) const = default;
};

// The middle rectangle of target_width x target_height. The side that is longer than needed is truncated, and half
// pixels round to even, as torchvision does. Throws DataError for a size below 1.
CropPlan center_crop(std::int64_t width, std::int64_t height, std::int64_t target_width, std::int64_t target_height);
// The middle square.
CropPlan center_crop(std::int64_t width, std::int64_t height, std::int64_t side);

// A part of a photo that must be seen, in its pixels.
struct ImageBox {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  bool operator==(const ImageBox&) const = default;
};

// The plan with the rectangle moved, as far as the photo reaches, so that the middle of the box is in its middle: all
// of the box is inside unless it is larger than the rectangle. `width` and `height` are the photo's.
CropPlan centered_on(CropPlan plan, std::int64_t width, std::int64_t height, const ImageBox& box);

// Whether the plan's rectangle shows all of the box, but for the half pixels that rounding takes.
bool shows(const CropPlan& plan, std::int64_t width, std::int64_t height, const ImageBox& box);

// The rectangle with its corner at (left, top). Throws DataError when it does not lie inside.
Image cut(const Image& image, std::int64_t left, std::int64_t top, std::int64_t width, std::int64_t height);

// The rectangle of `plan` out of a photo of the size that the plan was made for.
Image cropped(const Image& photo, const CropPlan& plan, Filter filter);

}  // namespace sdtune::model
