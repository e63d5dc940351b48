#include "model/image/grid.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <opencv2/imgproc.hpp>
#include <sstream>
#include <utility>

#include "model/base/error.h"

namespace sdtune::model {

namespace {

constexpr int kLineHeight = 18;  // px
constexpr std::size_t kMostLines = 3;
constexpr double kCaptionScale = 0.4;
constexpr int kCaptionBaseline = 5;  // px, from the line's lower edge

struct Cells {
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;  // without the caption
};

Cells lay_out(const std::vector<Image>& images, const GridLayout& layout) {
  const auto count = static_cast<std::int64_t>(images.size());
  Cells cells;
  const auto square = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  cells.columns = layout.columns > 0 ? std::min(layout.columns, count) : square;
  cells.rows = (count + cells.columns - 1) / cells.columns;
  for (const Image& image : images) {
    if (image.width < 1 || image.height < 1) throw DataError("grid", "an image is empty");
    cells.width = std::max(cells.width, image.width);
    cells.height = std::max(cells.height, image.height);
  }
  return cells;
}

void paste(cv::Mat& sheet, const Image& image, std::int64_t left, std::int64_t top) {
  const cv::Mat view(static_cast<int>(image.height), static_cast<int>(image.width), CV_8UC3,
                     const_cast<std::uint8_t*>(image.rgb.data()));
  view.copyTo(sheet(cv::Rect(static_cast<int>(left), static_cast<int>(top), view.cols, view.rows)));
}

int text_width(const std::string& text) {
  int baseline = 0;
  return cv::getTextSize(text, cv::FONT_HERSHEY_SIMPLEX, kCaptionScale, 1, &baseline).width;
}

// Broken between words to lines of at most `width` px; what is longer than kMostLines is cut.
std::vector<std::string> wrapped(const std::string& caption, std::int64_t width) {
  std::vector<std::string> lines;
  std::istringstream words(caption);
  for (std::string word; words >> word;) {
    if (!lines.empty() && text_width(lines.back() + ' ' + word) <= width) {
      lines.back().append(" ").append(word);
    } else if (lines.size() < kMostLines) {
      lines.push_back(std::move(word));
    } else {
      break;
    }
  }
  return lines;
}

// A word wider than the area is cut, because putText would run into the neighbour's.
void write_caption(cv::Mat area, const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const int bottom = static_cast<int>(i + 1) * kLineHeight;
    cv::putText(area, lines[i], cv::Point(0, bottom - kCaptionBaseline), cv::FONT_HERSHEY_SIMPLEX, kCaptionScale,
                cv::Scalar(0, 0, 0), 1, cv::LINE_AA);
  }
}

}  // namespace

Image make_grid(const std::vector<Image>& images, const GridLayout& layout) {
  if (images.empty()) throw DataError("grid", "there is no image to show");
  if (!layout.captions.empty() && layout.captions.size() != images.size()) {
    throw DataError("grid", "as many captions as images (got " + std::to_string(layout.captions.size()) + " for " +
                                std::to_string(images.size()) + ")");
  }
  const Cells cells = lay_out(images, layout);
  std::vector<std::vector<std::string>> captions;
  std::size_t lines = 0;
  for (const std::string& caption : layout.captions) {
    captions.push_back(wrapped(caption, cells.width));
    lines = std::max(lines, captions.back().size());
  }
  const std::int64_t caption = static_cast<std::int64_t>(lines) * kLineHeight;
  Image grid;
  grid.width = layout.gap + cells.columns * (cells.width + layout.gap);
  grid.height = layout.gap + cells.rows * (cells.height + caption + layout.gap);
  grid.rgb.assign(static_cast<std::size_t>(grid.width * grid.height) * 3, 255);
  cv::Mat sheet(static_cast<int>(grid.height), static_cast<int>(grid.width), CV_8UC3, grid.rgb.data());
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const std::int64_t left = layout.gap + index % cells.columns * (cells.width + layout.gap);
    const std::int64_t top = layout.gap + index / cells.columns * (cells.height + caption + layout.gap);
    const Image& image = images[i];
    paste(sheet, image, left + (cells.width - image.width) / 2, top + (cells.height - image.height) / 2);
    if (caption > 0) {
      write_caption(sheet(cv::Rect(static_cast<int>(left), static_cast<int>(top + cells.height),
                                   static_cast<int>(cells.width), static_cast<int>(caption))),
                    captions[i]);
    }
  }
  return grid;
}

}  // namespace sdtune::model
