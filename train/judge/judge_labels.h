// The truth about rendered pictures as tensors, for the judge's loss and figures.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "train/judge/judge_heads.h"

namespace sdtune::train::judge {

inline constexpr std::int64_t kHidden = -1;  // the picture cannot tell

struct Labels {
  torch::Tensor classes;  // [B, kHeadCount] int64; kHidden where visible_class is nothing
  torch::Tensor numbers;  // [B, kNumberNames.size()] float32; NaN where visible_number is nothing
  torch::Tensor people;   // [B] int64: equal for pictures of one person, counted from 0 in order of appearance
  Labels to(torch::Device device) const;
};

Labels labels_of(const std::vector<portrait::Portrait>& portraits);

}  // namespace sdtune::train::judge
