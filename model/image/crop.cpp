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

Image cropped(const Image& photo, const CropPlan& plan, Filter filter) {
  if (plan.left < 0 || plan.top < 0 || plan.left >= plan.free_columns() || plan.top >= plan.free_rows()) {
    throw DataError("crop", "the square lies outside of the picture");
  }
  const Image small = resized(photo, plan.resized_width, plan.resized_height, filter);
  Image square;
  square.width = square.height = plan.side;
  const auto row_bytes = static_cast<std::size_t>(plan.side) * 3;
  square.rgb.resize(row_bytes * static_cast<std::size_t>(plan.side));
  for (std::int64_t y = 0; y < plan.side; ++y) {
    const std::int64_t from = ((plan.top + y) * small.width + plan.left) * 3;
    std::copy_n(small.rgb.data() + from, row_bytes, square.rgb.data() + static_cast<std::size_t>(y) * row_bytes);
  }
  return square;
}

}  // namespace sdtune::model
