// The loss of photos and class pictures together (Ruiz et al., "DreamBooth", CVPR 2023): mean over the photos +
// prior_loss_weight x mean over the class pictures, both means over the effective batch.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace sdtune::train {

// What some samples add to the two means; summed over micro-batches, rounds and ranks they are the means.
struct LossShare {
  torch::Tensor instance;  // scalar float32
  torch::Tensor prior;     // scalar float32; 0 without class pictures

  torch::Tensor total(double prior_loss_weight) const { return instance + prior_loss_weight * prior; }
};

// sample_losses [instances + class pictures] float32 with the photos first; `effective_batch` photos make a step, and
// as many class pictures.
LossShare share_of_loss(const torch::Tensor& sample_losses, std::int64_t instances, std::int64_t effective_batch);

}  // namespace sdtune::train
