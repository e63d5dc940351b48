// Patches of feature maps as rows of a matrix, and the way back ("im2col", Chellapilla et al., 2006).
#pragma once

#include <torch/types.h>

namespace sdtune::model {

struct PatchShape {
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t padding = 1;
};

// x [B, C, H, W], float32 or bfloat16, channels_last -> [B * H' * W', C * k * k], columns in the order of a weight
// [out, C, k, k]; zero outside the map.
torch::Tensor gather_patches(const torch::Tensor& x, const PatchShape& shape);

// The transpose of gather_patches: adds each entry of `patches`, float32, to the pixel it came from. `like` gives the
// map's shape.
torch::Tensor scatter_patches(const torch::Tensor& patches, const torch::Tensor& like, const PatchShape& shape);

// Patches of some channels: row r begins at data + r * row_step with the first of `channels` channels from `first` on.
struct PatchColumns {
  const float* data;
  int64_t row_step, first, channels;
};
// Sets these channels of `map`, bfloat16 and channels_last, to what scatter_patches adds, rounded once; on this thread.
void scatter_channels(const PatchColumns& patches, const torch::Tensor& map, const PatchShape& shape);

}  // namespace sdtune::model
