#include "train/portrait/pretrain/mark_mask.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "train/portrait/classifier/classifier_labels.h"

namespace sdtune::train::pretrain {
namespace {

using portrait::Mark;

constexpr float kPixel = 2.0f / 128.0f;  // of an image that spans [-1, 1]
constexpr float kBorder = 3.0f * kPixel;
constexpr float kEarringBorder = 6.0f * kPixel;  // about its middle
// A birthmark's places are a disc's middle and three points half of the way to its ragged edge.
constexpr float kDiscBorder = 0.9f;  // of how far the places are apart

struct Range {
  float low = std::numeric_limits<float>::infinity(), high = -std::numeric_limits<float>::infinity();

  bool is_empty() const { return low > high; }
  float extent() const { return high - low; }
  void hold(float place) {
    low = std::min(low, place);
    high = std::max(high, place);
  }
  Range grown(float border) const { return {low - border, high + border}; }

  // The pixels of `side` whose middle lies in it: [first, last).
  std::pair<std::int64_t, std::int64_t> pixels(std::int64_t side) const {
    const float half = static_cast<float>(side) / 2.0f;
    const auto pixel = [&](float place) {
      return std::clamp(static_cast<std::int64_t>(std::ceil((place + 1.0f) * half - 0.5f)), std::int64_t{0}, side);
    };
    return {pixel(low), pixel(high)};
  }
};

struct Box {
  Range x, y;

  void hold(const torch::Tensor& place) {
    const float* at = place.const_data_ptr<float>();
    if (std::isnan(at[0])) return;  // cannot be seen
    x.hold(at[0]);
    y.hold(at[1]);
  }
};

void fill(const torch::Tensor& image, const Box& box, float border) {
  if (box.x.is_empty()) return;
  const auto [left, right] = box.x.grown(border).pixels(image.size(1));
  const auto [top, bottom] = box.y.grown(border).pixels(image.size(0));
  image.slice(0, top, bottom).slice(1, left, right).fill_(1);
}

// image: [side, side]; places: [4, 2] of that mark.
void fill_mark(const torch::Tensor& image, Mark mark, const torch::Tensor& places) {
  Box all;
  for (std::int64_t i = 0; i < places.size(0); ++i) {
    if (mark == Mark::kEarrings) {
      Box one;
      one.hold(places[i]);
      fill(image, one, kEarringBorder);
    } else {
      all.hold(places[i]);
    }
  }
  const float extent = std::max(all.x.extent(), all.y.extent());
  fill(image, all, mark == Mark::kBirthmark ? kBorder + kDiscBorder * extent : kBorder);
}

}  // namespace

torch::Tensor mark_mask(const ImagePool& pool, const std::vector<std::int64_t>& indices, std::int64_t side) {
  std::vector<portrait::Portrait> portraits;
  for (const std::int64_t index : indices) portraits.push_back(pool.portrait(index));
  const torch::Tensor places = classifier::labels_of(portraits).mark_places;  // [B, marks, 4, 2]
  torch::Tensor mask = torch::zeros({places.size(0), 1, side, side});
  for (std::int64_t i = 0; i < places.size(0); ++i) {
    for (std::int64_t mark = 0; mark < places.size(1); ++mark) {
      fill_mark(mask[i][0], static_cast<Mark>(mark), places[i][mark]);
    }
  }
  return mask;
}

}  // namespace sdtune::train::pretrain
