// Images in memory as tensors, and back: the one place of both conversions.
#pragma once

#include <torch/types.h>

#include <vector>

#include "model/base/image.h"

namespace sdtune::model {

// uint8 [H, W, 3], a copy on the CPU.
torch::Tensor image_bytes(const Image& image);

// uint8 [..., H, W, 3] -> float32 [..., 3, H, W] in [-1, 1], as the VAE takes it: value / 127.5 - 1.
torch::Tensor normalized_pixels(const torch::Tensor& bytes);

// [3, H, W] float32 on the CPU in [-1, 1].
torch::Tensor image_to_tensor(const Image& image);

// [..., 3, H, W] in [0, 1], any device and float type -> uint8 [..., H, W, 3] on the CPU: clamped, times 255, rounded
// to even, as diffusers' numpy_to_pil does. Throws NonFiniteError where a number is not finite, as after an overflow in
// half precision: diffusers writes a black image then.
torch::Tensor pixels_to_bytes(const torch::Tensor& pixels);

// uint8 [H, W, 3] on the CPU.
Image bytes_to_image(const torch::Tensor& bytes);

// [3, H, W] in [0, 1] to 8 bits; see pixels_to_bytes.
Image tensor_to_image(const torch::Tensor& pixels);

// [B, 3, H, W] in [0, 1] to B images; none for an undefined tensor.
std::vector<Image> tensor_to_images(const torch::Tensor& pixels);

}  // namespace sdtune::model
