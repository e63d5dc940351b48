// Where the heads of rendered people are, for losses that count them more.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "train/portrait/pretrain/image_pool.h"

namespace sdtune::train::pretrain {

// [B, 1, side, side] float32 on the CPU: 1 on the head, falling to 0 over a quarter of its radii.
torch::Tensor head_mask(const ImagePool& pool, const std::vector<std::int64_t>& indices, std::int64_t side);

}  // namespace sdtune::train::pretrain
