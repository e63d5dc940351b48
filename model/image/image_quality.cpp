#include "model/image/image_quality.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "model/base/error.h"
#include "model/image/resample.h"

namespace sdtune::model {

namespace {

constexpr int kHashSide = 64;           // px
constexpr int kFrequencies = 16;        // on each axis
constexpr int kTiles = 6;               // on each axis
constexpr int kSharpTile = 3;           // the fourth sharpest
constexpr double kLeastVariance = 100;  // of grey levels: a plain wall is not divided by nothing

// Luma of Rec. 601, as Pillow's "L".
std::vector<double> grey_levels(const Image& image) {
  std::vector<double> grey(image.rgb.size() / 3);
  for (std::size_t i = 0; i < grey.size(); ++i) {
    const std::uint8_t* pixel = image.rgb.data() + 3 * i;
    grey[i] = 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
  }
  return grey;
}

double variance(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(values.size());
  return values.empty() ? 0 : squares / count - (sum / count) * (sum / count);
}

using Spectrum = std::array<std::array<double, kFrequencies>, kFrequencies>;

// The type-II transform without its constant factors, which a comparison with the median does not need.
Spectrum low_frequencies(const std::vector<double>& grey) {
  std::array<std::array<double, kHashSide>, kFrequencies> waves{};
  for (int u = 0; u < kFrequencies; ++u) {
    for (int x = 0; x < kHashSide; ++x) waves[u][x] = std::cos(std::numbers::pi * (2 * x + 1) * u / (2.0 * kHashSide));
  }
  std::array<std::array<double, kFrequencies>, kHashSide> rows{};
  for (int y = 0; y < kHashSide; ++y) {
    for (int u = 0; u < kFrequencies; ++u) {
      for (int x = 0; x < kHashSide; ++x) rows[y][u] += waves[u][x] * grey[static_cast<std::size_t>(y * kHashSide + x)];
    }
  }
  Spectrum spectrum{};
  for (int v = 0; v < kFrequencies; ++v) {
    for (int u = 0; u < kFrequencies; ++u) {
      for (int y = 0; y < kHashSide; ++y) spectrum[v][u] += waves[v][y] * rows[y][u];
    }
  }
  return spectrum;
}

std::array<std::uint64_t, 4> perceptual_hash(const Image& image) {
  const Spectrum spectrum = low_frequencies(grey_levels(resized(image, kHashSide, kHashSide, Filter::kBilinear)));
  std::vector<double> values;
  for (const auto& row : spectrum) values.insert(values.end(), row.begin(), row.end());
  values.erase(values.begin());  // the mean
  std::vector<double> sorted = values;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
  const double median = sorted[sorted.size() / 2];
  std::array<std::uint64_t, 4> hash{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] > median) hash[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  return hash;
}

double tile_sharpness(const Image& image, const std::vector<double>& grey) {
  std::vector<std::vector<double>> tiles(kTiles * kTiles);
  const std::int64_t width = image.width, inner_width = width - 2, inner_height = image.height - 2;
  for (std::int64_t y = 0; y < inner_height; ++y) {
    for (std::int64_t x = 0; x < inner_width; ++x) {
      const double* at = grey.data() + (y + 1) * width + x + 1;
      const double laplacian = at[-1] + at[1] + at[-width] + at[width] - 4 * at[0];
      const std::int64_t tile = y * kTiles / inner_height * kTiles + x * kTiles / inner_width;
      tiles[static_cast<std::size_t>(tile)].push_back(laplacian);
    }
  }
  std::vector<double> sharpness;
  for (const std::vector<double>& tile : tiles) sharpness.push_back(variance(tile));
  std::sort(sharpness.begin(), sharpness.end(), std::greater<>());
  return sharpness[kSharpTile];
}

}  // namespace

ImageQuality image_signs(const Image& preview) {
  if (preview.width < 1 || preview.height < 1) throw DataError("image", "has no pixels");
  ImageQuality signs;
  signs.hash = perceptual_hash(preview);
  const std::vector<double> grey = grey_levels(preview);
  signs.sharpness = tile_sharpness(preview, grey) / std::max(variance(grey), kLeastVariance);
  for (std::size_t i = 0; i < preview.rgb.size(); i += 3) {
    const auto [least, most] = std::minmax({preview.rgb[i], preview.rgb[i + 1], preview.rgb[i + 2]});
    signs.saturation += most - least;
  }
  signs.saturation /= 255.0 * static_cast<double>(grey.size());
  return signs;
}

int hash_distance(const ImageQuality& left, const ImageQuality& right) {
  int distance = 0;
  for (std::size_t i = 0; i < left.hash.size(); ++i) distance += std::popcount(left.hash[i] ^ right.hash[i]);
  return distance;
}

}  // namespace sdtune::model
