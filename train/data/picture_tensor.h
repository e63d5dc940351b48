// Pictures as the VAE takes and gives them.
#pragma once

#include <torch/types.h>

#include "model/base/image.h"

namespace sdtune::train {

// [3, H, W] float32 on the CPU in [-1, 1]: value / 127.5 - 1.
torch::Tensor picture_to_tensor(const Image& image);

// [3, H, W] in [0, 1], any device and float type, to 8 bits: clamped, times 255, rounded.
Image tensor_to_picture(const torch::Tensor& picture);

}  // namespace sdtune::train
