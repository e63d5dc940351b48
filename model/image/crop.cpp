#include "model/image/crop.h"

#include <algorithm>
#include <cstddef>

#include "model/base/error.h"

namespace sdtune::model {

namespace {

// Half of an even number rounds to even, as Python's round does.
std::int64_t half_to_even(std::int64_t value) {
  const std::int64_t half = value / 2;
  return value % 2 == 0 ? half : half + half % 2;
}

}  // namespace

CropPlan center_crop(std::int64_t width, std::int64_t height, std::int64_t side) {
  if (width < 1 || height < 1 || side < 1) throw DataError("crop", "a size is not positive");
  CropPlan plan;
  plan.side = side;
  const std::int64_t shorter = std::min(width, height);
  const std::int64_t longer = side * std::max(width, height) / shorter;
  plan.resized_width = width <= height ? side : longer;
  plan.resized_height = width <= height ? longer : side;
  plan.left = half_to_even(plan.resized_width - side);
  plan.top = half_to_even(plan.resized_height - side);
  return plan;
}

Image cut_square(const Image& image, std::int64_t left, std::int64_t top, std::int64_t side) {
  if (left < 0 || top < 0 || side < 1 || left > image.width - side || top > image.height - side) {
    throw DataError("crop", "the square lies outside of the picture");
  }
  Image square;
  square.width = square.height = side;
  const auto row_bytes = static_cast<std::size_t>(side) * 3;
  square.rgb.resize(row_bytes * static_cast<std::size_t>(side));
  for (std::int64_t y = 0; y < side; ++y) {
    const std::int64_t from = ((top + y) * image.width + left) * 3;
    std::copy_n(image.rgb.data() + from, row_bytes, square.rgb.data() + static_cast<std::size_t>(y) * row_bytes);
  }
  return square;
}

Image cropped(const Image& photo, const CropPlan& plan, Filter filter) {
  return cut_square(resized(photo, plan.resized_width, plan.resized_height, filter), plan.left, plan.top, plan.side);
}

}  // namespace sdtune::model
