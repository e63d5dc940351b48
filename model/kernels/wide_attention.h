// Attention of wide heads on a CPU by matrix products: the autoencoder's, whose one head has as many numbers as the map
// has channels, too many for tiles of float32 that stay in the caches (attention.h).
#pragma once

#include <torch/types.h>

namespace sdtune::model {

// Whether attend_wide takes these: on a CPU, float32 or bfloat16, heads wider than attention.h's, and no gradient asked
// for.
bool can_attend_wide(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v);

// softmax(q k^T / sqrt(d)) v for q [B, L, H, d], k and v [B, M, H, d] -> [B, L, H, d]; without gradients. Computed in
// float32 whatever the dtype, over blocks of rows, so that memory grows with M alone.
torch::Tensor attend_wide(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v);

}  // namespace sdtune::model
