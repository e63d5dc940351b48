// Resizing with the antialiased filters that Pillow's Image.resize has, which is what diffusers' scripts prepare their
// training images with. OpenCV's Lanczos is not antialiased, so it is no substitute.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/image.h"

namespace sdtune::model {

enum class Filter { kBilinear, kBicubic, kLanczos };

// "bilinear", "bicubic", "lanczos"; throws ConfigError naming `where`.
Filter parse_filter(const std::string& text, const std::string& where);

// A part of an image: [left, right) x [top, bottom) in pixels; edges may lie inside a pixel.
struct SourceBox {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

// The whole image, or a box of it, as width x height pixels (both at least 1). Equal to Pillow's
// resize((width, height), filter, box): the same weights in the same fixed-point arithmetic. Throws DataError when the
// box is empty or reaches beyond the image.
Image resized(const Image& image, std::int64_t width, std::int64_t height, Filter filter);
Image resized(const Image& image, std::int64_t width, std::int64_t height, Filter filter, const SourceBox& box);

}  // namespace sdtune::model
