#include "model/image/orientation.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace sdtune::model {

namespace {

// The stored place that is seen at (x, y), for orientations that keep the axes and for those that swap them.
std::pair<std::int64_t, std::int64_t> stored_place(const Image& stored, int orientation, std::int64_t x,
                                                   std::int64_t y) {
  const std::int64_t right = stored.width - 1;
  const std::int64_t bottom = stored.height - 1;
  switch (orientation) {
    case 2:
      return {right - x, y};
    case 3:
      return {right - x, bottom - y};
    case 4:
      return {x, bottom - y};
    case 5:
      return {y, x};
    case 6:
      return {y, bottom - x};
    case 7:
      return {right - y, bottom - x};
    case 8:
      return {right - y, x};
    default:
      return {x, y};
  }
}

}  // namespace

Image oriented(Image stored, int orientation) {
  if (orientation <= 1 || orientation > 8) return stored;
  Image seen;
  const bool swapped = orientation >= 5;
  seen.width = swapped ? stored.height : stored.width;
  seen.height = swapped ? stored.width : stored.height;
  seen.rgb.resize(stored.rgb.size());
  // The stored place moves by a fixed stride with x and with y.
  const auto index = [&](std::int64_t x, std::int64_t y) {
    const auto [from_x, from_y] = stored_place(stored, orientation, x, y);
    return (from_y * stored.width + from_x) * 3;
  };
  const std::int64_t origin = index(0, 0);
  const std::int64_t stride_x = index(1, 0) - origin;
  const std::int64_t stride_y = index(0, 1) - origin;
  std::uint8_t* to = seen.rgb.data();
  for (std::int64_t y = 0; y < seen.height; ++y) {
    for (std::int64_t x = 0; x < seen.width; ++x, to += 3) {
      std::copy_n(stored.rgb.data() + origin + x * stride_x + y * stride_y, 3, to);
    }
  }
  return seen;
}

Image mirrored(Image image) {
  return oriented(std::move(image), 2);
}

}  // namespace sdtune::model
