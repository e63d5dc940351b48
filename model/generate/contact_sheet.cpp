#include "model/generate/contact_sheet.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "model/base/error.h"
#include "model/image/grid.h"
#include "model/image/resample.h"

namespace sdtune::model {
namespace {

constexpr std::int64_t kSmallestSide = 192;     // px
constexpr std::int64_t kLargestSide = 16384;    // px, of the sheet
constexpr std::int64_t kGap = 4;                // px, as GridLayout's
constexpr std::int64_t kCaptionSpace = 3 * 18;  // px: the most that make_grid takes

Image enlarged(const Image& image) {
  const std::int64_t side = std::max(image.width, image.height);
  const std::int64_t times = (kSmallestSide + side - 1) / side;
  if (times <= 1) return image;
  return resized(image, image.width * times, image.height * times, Filter::kLanczos);
}

// Whole, as large as fits into width x height.
Image fitted(const Image& photo, std::int64_t width, std::int64_t height) {
  const double scale = std::min(static_cast<double>(width) / static_cast<double>(photo.width),
                                static_cast<double>(height) / static_cast<double>(photo.height));
  const auto side = [&](std::int64_t length) {
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(length) * scale));
  };
  return resized(photo, side(photo.width), side(photo.height), Filter::kLanczos);
}

}  // namespace

void check_sheet(const SheetPlan& plan, const std::string& where) {
  const std::int64_t side = std::max<std::int64_t>(1, std::max(plan.width, plan.height));
  const std::int64_t times = std::max<std::int64_t>(1, (kSmallestSide + side - 1) / side);
  const std::int64_t width = plan.columns * (plan.width * times + kGap) + kGap;
  const std::int64_t height = plan.rows * (plan.height * times + kGap + kCaptionSpace) + kGap;
  if (std::max(width, height) <= kLargestSide) return;
  throw ConfigError(where,
                    "would be too large for many viewers (got about " + std::to_string(width) + "x" +
                        std::to_string(height) + " px; allowed: up to " + std::to_string(kLargestSide) + " px a side)",
                    "generate fewer prompts or images, or leave " + where + " out");
}

Image make_sheet(const std::vector<Image>& photos, std::vector<SheetRow> rows) {
  std::int64_t width = 1, height = 1;
  for (SheetRow& row : rows) {
    for (Image& image : row.images) {
      image = enlarged(image);
      width = std::max(width, image.width);
      height = std::max(height, image.height);
    }
  }
  if (!photos.empty()) {
    SheetRow first;
    for (const Image& photo : photos) first.images.push_back(fitted(photo, width, height));
    first.captions.assign(photos.size(), "photo");
    rows.insert(rows.begin(), std::move(first));
  }
  std::size_t columns = 0;
  for (const SheetRow& row : rows) columns = std::max(columns, row.images.size());
  std::vector<Image> cells;
  GridLayout layout;
  layout.columns = static_cast<std::int64_t>(columns);
  for (SheetRow& row : rows) {
    row.images.resize(columns, Image{1, 1, {255, 255, 255}});
    row.captions.resize(columns);
    std::move(row.images.begin(), row.images.end(), std::back_inserter(cells));
    std::move(row.captions.begin(), row.captions.end(), std::back_inserter(layout.captions));
  }
  return make_grid(cells, layout);
}

}  // namespace sdtune::model
