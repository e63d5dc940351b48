#include "train/portrait/pretrain/head_mask.h"

#include <algorithm>

#include "train/portrait/scene/head_place.h"

namespace sdtune::train::pretrain {
namespace {

constexpr float kHeadEdge = 0.25f;  // over which the mask fades out, in the head's radii

}  // namespace

torch::Tensor head_mask(const ImagePool& pool, const std::vector<std::int64_t>& indices, std::int64_t side) {
  torch::Tensor weights = torch::empty({static_cast<std::int64_t>(indices.size()), 1, side, side});
  float* at = weights.data_ptr<float>();
  const float step = 2.0f / static_cast<float>(side);
  for (const std::int64_t index : indices) {
    const portrait::HeadPlace head = portrait::head_place(pool.portrait(index).now);
    for (std::int64_t i = 0; i < side * side; ++i) {
      const std::int64_t row = i / side, column = i % side;
      const float x = (static_cast<float>(column) + 0.5f) * step - 1.0f;
      const float y = 1.0f - (static_cast<float>(row) + 0.5f) * step;
      *at++ = std::clamp((1.0f + kHeadEdge - head.distance(x, y)) / kHeadEdge, 0.0f, 1.0f);
    }
  }
  return weights;
}

}  // namespace sdtune::train::pretrain
