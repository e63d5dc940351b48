// Direct Consistency Optimization (Lee et al., "Direct consistency optimization for robust customization of
// text-to-image diffusion models", NeurIPS 2024): photos are learned by how the model compares with the base, so that
// what the base has learned is kept where the photos do not ask for more.
#pragma once

#include <torch/types.h>

namespace sdtune::train {

// How much the loss of each photo counts: 2 sigmoid(beta (loss - base_loss)), without gradients. Both losses [B]
// float32, of the same noise and timesteps, -> [B] in (0, 2): 1 where the two are equal, and less the further the loss
// is below the base's. So weighted, the gradient is that of the paper's loss, -log sigmoid(-beta (loss - base_loss)),
// times 2 / beta: learning rates keep their meaning.
torch::Tensor consistency_weights(const torch::Tensor& losses, const torch::Tensor& base_losses, double beta);

}  // namespace sdtune::train
