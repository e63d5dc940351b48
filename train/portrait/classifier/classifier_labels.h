// The truth about rendered images as tensors, for the classifier's loss and figures.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "train/portrait/classifier/classifier_heads.h"

namespace sdtune::train::classifier {

inline constexpr std::int64_t kHidden = -1;  // the image cannot tell

struct Labels {
  torch::Tensor classes;  // [B, kHeadCount] int64; kHidden where visible_class is nothing
  torch::Tensor
      numbers;  // [B, kNumberNames.size()] float32; NaN where visible_number is nothing, so where a detail shows none
  torch::Tensor landmarks;  // [B, landmark_count(detail), 2] float32: x to the right, y down, an image spans [-1, 1]
  torch::Tensor landmarks_seen;  // [B, landmark_count(detail)] float32: 1 where nothing covers it, else 0
  torch::Tensor mark_places;     // [B, mark_count(detail), 4, 2] float32, as landmarks; NaN where none is seen
  torch::Tensor people;          // [B] int64: equal for images of one person, counted from 0 in order of appearance
  Labels to(torch::Device device) const;
};

// Of images of one detail (std::invalid_argument).
Labels labels_of(const std::vector<portrait::Portrait>& portraits);

}  // namespace sdtune::train::classifier
