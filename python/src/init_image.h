// The image that a call of image to image begins with, as Python gives it.
#pragma once

#include <pybind11/pybind11.h>
#include <torch/types.h>

#include "model/pipeline/bundle.h"

namespace sdtune::python {

// [B, 3, H, W] in [-1, 1], or latents as they are. `image` is a PIL image or a list of them, resized to `height` and
// `width` where these are not 0, else down to the VAE's factor (Lanczos, as diffusers does); or an array [H, W, 3] or
// [B, H, W, 3] in [0, 1] (uint8: 0..255), or latents [B, C, h, w]. Throws ConfigError naming "image".
torch::Tensor read_init_image(const pybind11::object& image, const model::ModelBundle& bundle, std::int64_t height,
                              std::int64_t width);

}  // namespace sdtune::python
