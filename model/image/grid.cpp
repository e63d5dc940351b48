#include "model/image/grid.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <opencv2/imgproc.hpp>

#include "model/base/error.h"

namespace sdtune::model {

namespace {

constexpr int kCaptionHeight = 18;  // px
constexpr double kCaptionScale = 0.4;
constexpr int kCaptionBaseline = 5;  // px, from the cell's lower edge

struct Cells {
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;  // without the caption
};

Cells lay_out(const std::vector<Image>& pictures, const GridLayout& layout) {
  const auto count = static_cast<std::int64_t>(pictures.size());
  Cells cells;
  const auto square = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  cells.columns = layout.columns > 0 ? std::min(layout.columns, count) : square;
  cells.rows = (count + cells.columns - 1) / cells.columns;
  for (const Image& picture : pictures) {
    if (picture.width < 1 || picture.height < 1) throw DataError("grid", "a picture is empty");
    cells.width = std::max(cells.width, picture.width);
    cells.height = std::max(cells.height, picture.height);
  }
  return cells;
}

void paste(cv::Mat& sheet, const Image& picture, std::int64_t left, std::int64_t top) {
  const cv::Mat view(static_cast<int>(picture.height), static_cast<int>(picture.width), CV_8UC3,
                     const_cast<std::uint8_t*>(picture.rgb.data()));
  view.copyTo(sheet(cv::Rect(static_cast<int>(left), static_cast<int>(top), view.cols, view.rows)));
}

// Cut to the cell's width, because putText would run into the neighbour's.
void write_caption(cv::Mat cell, const std::string& caption) {
  cv::putText(cell, caption, cv::Point(0, cell.rows - kCaptionBaseline), cv::FONT_HERSHEY_SIMPLEX, kCaptionScale,
              cv::Scalar(0, 0, 0), 1, cv::LINE_AA);
}

}  // namespace

Image make_grid(const std::vector<Image>& pictures, const GridLayout& layout) {
  if (pictures.empty()) throw DataError("grid", "there is no picture to show");
  if (!layout.captions.empty() && layout.captions.size() != pictures.size()) {
    throw DataError("grid", "as many captions as pictures (got " + std::to_string(layout.captions.size()) + " for " +
                                std::to_string(pictures.size()) + ")");
  }
  const Cells cells = lay_out(pictures, layout);
  const std::int64_t caption = layout.captions.empty() ? 0 : kCaptionHeight;
  Image grid;
  grid.width = layout.gap + cells.columns * (cells.width + layout.gap);
  grid.height = layout.gap + cells.rows * (cells.height + caption + layout.gap);
  grid.rgb.assign(static_cast<std::size_t>(grid.width * grid.height) * 3, 255);
  cv::Mat sheet(static_cast<int>(grid.height), static_cast<int>(grid.width), CV_8UC3, grid.rgb.data());
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const std::int64_t left = layout.gap + index % cells.columns * (cells.width + layout.gap);
    const std::int64_t top = layout.gap + index / cells.columns * (cells.height + caption + layout.gap);
    const Image& picture = pictures[i];
    paste(sheet, picture, left + (cells.width - picture.width) / 2, top + (cells.height - picture.height) / 2);
    if (caption > 0) {
      write_caption(sheet(cv::Rect(static_cast<int>(left), static_cast<int>(top + cells.height),
                                   static_cast<int>(cells.width), static_cast<int>(caption))),
                    layout.captions[i]);
    }
  }
  return grid;
}

}  // namespace sdtune::model
