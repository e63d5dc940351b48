#include "app/commands/sample_sheet.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "model/base/error.h"
#include "model/image/grid.h"
#include "model/image/resample.h"

namespace sdtune::app {
namespace {

constexpr std::int64_t kSmallestSide = 192;     // px
constexpr std::int64_t kLargestSide = 16384;    // px, of the sheet
constexpr std::int64_t kGap = 4;                // px, as GridLayout's
constexpr std::int64_t kCaptionSpace = 3 * 18;  // px: the most that make_grid takes

Image enlarged(const Image& picture) {
  const std::int64_t side = std::max(picture.width, picture.height);
  const std::int64_t times = (kSmallestSide + side - 1) / side;
  if (times <= 1) return picture;
  return model::resized(picture, picture.width * times, picture.height * times, model::Filter::kLanczos);
}

// Whole, as large as fits into width x height.
Image fitted(const Image& photo, std::int64_t width, std::int64_t height) {
  const double scale = std::min(static_cast<double>(width) / static_cast<double>(photo.width),
                                static_cast<double>(height) / static_cast<double>(photo.height));
  const auto side = [&](std::int64_t length) {
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(length) * scale));
  };
  return model::resized(photo, side(photo.width), side(photo.height), model::Filter::kLanczos);
}

}  // namespace

void check_sheet(const SheetPlan& plan) {
  const std::int64_t side = std::max<std::int64_t>(1, std::max(plan.width, plan.height));
  const std::int64_t times = std::max<std::int64_t>(1, (kSmallestSide + side - 1) / side);
  const std::int64_t width = plan.columns * (plan.width * times + kGap) + kGap;
  const std::int64_t height = plan.rows * (plan.height * times + kGap + kCaptionSpace) + kGap;
  if (std::max(width, height) <= kLargestSide) return;
  throw ConfigError("--grid",
                    "would be too large to look at (got about " + std::to_string(width) + "x" + std::to_string(height) +
                        " px; allowed: up to " + std::to_string(kLargestSide) + " px a side)",
                    "draw fewer prompts or images at once, or leave --grid out");
}

Image make_sheet(const std::vector<Image>& photos, std::vector<SheetRow> rows) {
  std::int64_t width = 1, height = 1;
  for (SheetRow& row : rows) {
    for (Image& picture : row.pictures) {
      picture = enlarged(picture);
      width = std::max(width, picture.width);
      height = std::max(height, picture.height);
    }
  }
  if (!photos.empty()) {
    SheetRow first;
    for (const Image& photo : photos) first.pictures.push_back(fitted(photo, width, height));
    first.captions.assign(photos.size(), "photo");
    rows.insert(rows.begin(), std::move(first));
  }
  std::size_t columns = 0;
  for (const SheetRow& row : rows) columns = std::max(columns, row.pictures.size());
  std::vector<Image> cells;
  model::GridLayout layout;
  layout.columns = static_cast<std::int64_t>(columns);
  for (SheetRow& row : rows) {
    row.pictures.resize(columns, Image{1, 1, {255, 255, 255}});
    row.captions.resize(columns);
    std::move(row.pictures.begin(), row.pictures.end(), std::back_inserter(cells));
    std::move(row.captions.begin(), row.captions.end(), std::back_inserter(layout.captions));
  }
  return model::make_grid(cells, layout);
}

}  // namespace sdtune::app
