// Where marks of rendered people are, for the autoencoder's loss.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "train/portrait/pretrain/image_pool.h"

namespace sdtune::train::pretrain {

// [B, 1, side, side] float32 on the CPU: 1 on and around each birthmark, mole, scar and earring that can be seen, else
// 0; of detail 64 all 0.
torch::Tensor mark_mask(const ImagePool& pool, const std::vector<std::int64_t>& indices, std::int64_t side);

}  // namespace sdtune::train::pretrain
