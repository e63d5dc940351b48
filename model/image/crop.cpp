#include "model/image/crop.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "model/base/error.h"

namespace sdtune::model {

namespace {

// Half of an even number rounds to even, as Python's round does.
std::int64_t half_to_even(std::int64_t value) {
  const std::int64_t half = value / 2;
  return value % 2 == 0 ? half : half + half % 2;
}

// Where the rectangle begins on one axis: `middle` is of the box, in px of the resized image.
std::int64_t centered_start(double middle, std::int64_t extent, std::int64_t free_places) {
  const double start = std::round(middle - static_cast<double>(extent) / 2);
  return static_cast<std::int64_t>(std::clamp(start, 0.0, static_cast<double>(free_places - 1)));
}

}  // namespace

CropPlan center_crop(std::int64_t width, std::int64_t height, std::int64_t target_width, std::int64_t target_height) {
  if (width < 1 || height < 1 || target_width < 1 || target_height < 1) {
    throw DataError("crop", "a size is not positive");
  }
  CropPlan plan;
  plan.width = target_width;
  plan.height = target_height;
  const bool fits_width = target_width * height >= target_height * width;
  plan.resized_width = fits_width ? target_width : width * target_height / height;
  plan.resized_height = fits_width ? height * target_width / width : target_height;
  plan.left = half_to_even(plan.resized_width - target_width);
  plan.top = half_to_even(plan.resized_height - target_height);
  return plan;
}

CropPlan center_crop(std::int64_t width, std::int64_t height, std::int64_t side) {
  return center_crop(width, height, side, side);
}

CropPlan centered_on(CropPlan plan, std::int64_t width, std::int64_t height, const ImageBox& box) {
  const double across = static_cast<double>(plan.resized_width) / static_cast<double>(width);
  const double down = static_cast<double>(plan.resized_height) / static_cast<double>(height);
  plan.left = centered_start((box.left + box.width / 2) * across, plan.width, plan.free_columns());
  plan.top = centered_start((box.top + box.height / 2) * down, plan.height, plan.free_rows());
  return plan;
}

bool shows(const CropPlan& plan, std::int64_t width, std::int64_t height, const ImageBox& box) {
  constexpr double kRounding = 0.5;  // px
  const double across = static_cast<double>(plan.resized_width) / static_cast<double>(width);
  const double down = static_cast<double>(plan.resized_height) / static_cast<double>(height);
  const auto left = static_cast<double>(plan.left), top = static_cast<double>(plan.top);
  return box.left * across >= left - kRounding && box.top * down >= top - kRounding &&
         (box.left + box.width) * across <= left + static_cast<double>(plan.width) + kRounding &&
         (box.top + box.height) * down <= top + static_cast<double>(plan.height) + kRounding;
}

Image cut(const Image& image, std::int64_t left, std::int64_t top, std::int64_t width, std::int64_t height) {
  const bool inside = left >= 0 && top >= 0 && left <= image.width - width && top <= image.height - height;
  if (!inside || width < 1 || height < 1) throw DataError("crop", "the rectangle lies outside of the image");
  Image part{width, height, {}};
  const auto row_bytes = static_cast<std::size_t>(width) * 3;
  part.rgb.resize(row_bytes * static_cast<std::size_t>(height));
  for (std::int64_t y = 0; y < height; ++y) {
    const std::int64_t from = ((top + y) * image.width + left) * 3;
    std::copy_n(image.rgb.data() + from, row_bytes, part.rgb.data() + static_cast<std::size_t>(y) * row_bytes);
  }
  return part;
}

Image cropped(const Image& photo, const CropPlan& plan, Filter filter) {
  return cut(resized(photo, plan.resized_width, plan.resized_height, filter), plan.left, plan.top, plan.width,
             plan.height);
}

}  // namespace sdtune::model
