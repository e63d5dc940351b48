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
  torch::Tensor numbers;  // [B, kNumberNames.size()] float32; NaN where visible_number is nothing
  torch::Tensor people;   // [B] int64: equal for images of one person, counted from 0 in order of appearance
  Labels to(torch::Device device) const;
};

Labels labels_of(const std::vector<portrait::Portrait>& portraits);

}  // namespace sdtune::train::classifier
