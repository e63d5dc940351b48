// Makes clean renders similar to generated images, so that the classifier stays right on those.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

namespace sdtune::train::classifier {

// [B, 3, S, S] in [-1, 1] to the same images as the VAE gives them back. Empty: there is no VAE yet.
using Reconstruct = std::function<torch::Tensor(const torch::Tensor&)>;

// Of images [B, 3, S, S] in [-1, 1]: a quarter through the VAE; half blurred, up to twice a 3 x 3 mean; half with
// noise of up to 0.15; all up to 0.1 brighter or darker and 0.12 more or less contrasted. A pure function of images,
// seed and step on the CPU; row i depends on its own draws only.
torch::Tensor augment(const torch::Tensor& images, std::uint64_t seed, std::uint64_t step,
                      const Reconstruct& reconstruct);

}  // namespace sdtune::train::classifier
