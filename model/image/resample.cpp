#include "model/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "model/base/error.h"

namespace sdtune::model {

namespace {

// Weights are fixed-point with this many fraction bits: 8 bits of pixel, 2 of headroom for negative lobes.
constexpr int kFractionBits = 32 - 8 - 2;

double bilinear(double x) {
  return std::max(0.0, 1.0 - std::abs(x));
}

// Keys' cubic convolution with a = -0.5.
double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

// Lanczos with three lobes.
double lanczos(double x) {
  return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
}

struct Kernel {
  double (*weight)(double);
  double support;  // source pixels on either side, before widening
};

Kernel kernel_of(Filter filter) {
  if (filter == Filter::kBilinear) return {bilinear, 1.0};
  if (filter == Filter::kBicubic) return {bicubic, 2.0};
  return {lanczos, 3.0};
}

// For one axis: output pixel i is the sum of weights[i * taps + k] x source[first[i] + k] for k < count[i].
struct AxisWeights {
  std::size_t taps = 0;
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> count;
  std::vector<std::int32_t> weights;
};

AxisWeights axis_weights(std::int64_t source_size, double from, double to, std::int64_t size, const Kernel& kernel) {
  const double scale = (to - from) / static_cast<double>(size);
  // Shrinking widens the kernel over all the source pixels that fall into an output pixel: that is the antialiasing.
  const double widening = std::max(scale, 1.0);
  const double support = kernel.support * widening;
  AxisWeights axis;
  axis.taps = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
  axis.weights.assign(axis.taps * static_cast<std::size_t>(size), 0);
  std::vector<double> row(axis.taps);
  for (std::int64_t i = 0; i < size; ++i) {
    const double center = from + (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(center - support + 0.5), 0);
    const auto last = std::min(static_cast<std::int64_t>(center + support + 0.5), source_size);
    double sum = 0.0;
    for (std::int64_t k = 0; k < last - first; ++k) {
      const double weight = kernel.weight((static_cast<double>(k + first) - center + 0.5) / widening);
      row[static_cast<std::size_t>(k)] = weight;
      sum += weight;
    }
    std::int32_t* fixed = axis.weights.data() + static_cast<std::size_t>(i) * axis.taps;
    for (std::int64_t k = 0; k < last - first; ++k) {
      const double share = sum != 0.0 ? row[static_cast<std::size_t>(k)] / sum : 0.0;
      fixed[k] = static_cast<std::int32_t>(std::lround(share * (1 << kFractionBits)));
    }
    axis.first.push_back(first);
    axis.count.push_back(last - first);
  }
  return axis;
}

std::uint8_t to_byte(std::int32_t fixed) {
  return static_cast<std::uint8_t>(std::clamp(fixed >> kFractionBits, 0, 255));
}

constexpr std::int32_t kHalf = 1 << (kFractionBits - 1);

// Rows [first_row, first_row + rows) of the source, resized along x.
Image resize_rows(const Image& source, const AxisWeights& axis, std::int64_t first_row, std::int64_t rows) {
  Image result;
  result.width = static_cast<std::int64_t>(axis.first.size());
  result.height = rows;
  result.rgb.resize(static_cast<std::size_t>(result.width * rows) * 3);
  std::uint8_t* to = result.rgb.data();
  for (std::int64_t y = 0; y < rows; ++y) {
    const std::uint8_t* row = source.rgb.data() + (first_row + y) * source.width * 3;
    for (std::size_t x = 0; x < axis.first.size(); ++x, to += 3) {
      const std::uint8_t* from = row + axis.first[x] * 3;
      const std::int32_t* weights = axis.weights.data() + x * axis.taps;
      std::int32_t red = kHalf, green = kHalf, blue = kHalf;
      for (std::int64_t k = 0; k < axis.count[x]; ++k, from += 3) {
        red += from[0] * weights[k];
        green += from[1] * weights[k];
        blue += from[2] * weights[k];
      }
      to[0] = to_byte(red);
      to[1] = to_byte(green);
      to[2] = to_byte(blue);
    }
  }
  return result;
}

// Resized along y; `first_row` is the row of the whole image that source's row 0 is.
Image resize_columns(const Image& source, const AxisWeights& axis, std::int64_t first_row) {
  Image result;
  result.width = source.width;
  result.height = static_cast<std::int64_t>(axis.first.size());
  const auto row_bytes = static_cast<std::size_t>(source.width) * 3;
  result.rgb.resize(row_bytes * axis.first.size());
  std::vector<std::int32_t> sums(row_bytes);
  for (std::size_t y = 0; y < axis.first.size(); ++y) {
    std::fill(sums.begin(), sums.end(), kHalf);
    for (std::int64_t k = 0; k < axis.count[y]; ++k) {
      const std::uint8_t* from =
          source.rgb.data() + static_cast<std::size_t>(axis.first[y] - first_row + k) * row_bytes;
      const std::int32_t weight = axis.weights[y * axis.taps + static_cast<std::size_t>(k)];
      for (std::size_t i = 0; i < row_bytes; ++i) sums[i] += from[i] * weight;
    }
    std::transform(sums.begin(), sums.end(), result.rgb.begin() + static_cast<std::ptrdiff_t>(y * row_bytes), to_byte);
  }
  return result;
}

bool is_identity(double from, double to, std::int64_t size, std::int64_t source_size) {
  return from == 0.0 && to == static_cast<double>(source_size) && size == source_size;
}

void check_box(const Image& image, std::int64_t width, std::int64_t height, const SourceBox& box) {
  const bool inside = box.left >= 0 && box.top >= 0 && box.right <= static_cast<double>(image.width) &&
                      box.bottom <= static_cast<double>(image.height);
  if (width < 1 || height < 1 || !inside || !(box.left < box.right) || !(box.top < box.bottom)) {
    throw DataError("resize", "the box or the new size is empty, or the box reaches beyond the image of " +
                                  std::to_string(image.width) + "x" + std::to_string(image.height));
  }
}

}  // namespace

Filter parse_filter(const std::string& text, const std::string& where) {
  if (text == "bilinear") return Filter::kBilinear;
  if (text == "bicubic") return Filter::kBicubic;
  if (text == "lanczos") return Filter::kLanczos;
  throw ConfigError(where, "unknown filter (got " + text + "; allowed: bilinear, bicubic, lanczos)");
}

Image resized(const Image& image, std::int64_t width, std::int64_t height, Filter filter) {
  const SourceBox whole{0, 0, static_cast<double>(image.width), static_cast<double>(image.height)};
  return resized(image, width, height, filter, whole);
}

Image resized(const Image& image, std::int64_t width, std::int64_t height, Filter filter, const SourceBox& box) {
  check_box(image, width, height, box);
  const Kernel kernel = kernel_of(filter);
  const bool keep_columns = is_identity(box.left, box.right, width, image.width);
  const bool keep_rows = is_identity(box.top, box.bottom, height, image.height);
  if (keep_columns && keep_rows) return image;
  const AxisWeights down = axis_weights(image.height, box.top, box.bottom, height, kernel);
  if (keep_columns) return resize_columns(image, down, 0);
  const AxisWeights across = axis_weights(image.width, box.left, box.right, width, kernel);
  if (keep_rows) return resize_rows(image, across, 0, image.height);
  // Only the rows that the second pass reads.
  const std::int64_t first_row = down.first.front();
  const std::int64_t rows = down.first.back() + down.count.back() - first_row;
  return resize_columns(resize_rows(image, across, first_row, rows), down, first_row);
}

}  // namespace sdtune::model
