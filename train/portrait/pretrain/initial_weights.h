// Weights before training, as a function of the seed alone.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>

namespace sdtune::train::pretrain {

// Layers as PyTorch draws them (He et al. 2015 with a = sqrt 5, here normal with the same variance), norms as
// identities, embeddings N(0, 0.02^2) as CLIP has them. The last layer of each residual branch starts at zero, so that
// a new network is the identity plus nothing (Dhariwal & Nichol, "Diffusion models beat GANs on image synthesis",
// 2021). `stream` tells the parts of one model apart.
void draw_initial_weights(torch::nn::Module& module, std::uint64_t seed, std::uint64_t stream);

}  // namespace sdtune::train::pretrain
