// The loss of photos and class images together (Ruiz et al., "DreamBooth", CVPR 2023): mean over the photos +
// prior_loss_weight x mean over the class images, both means over the effective batch.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace sdtune::train {

// What some samples add to the two means; summed over micro-batches, rounds and ranks they are the means.
struct LossShare {
  torch::Tensor instance;  // scalar float32
  torch::Tensor prior;     // scalar float32; 0 without class images

  torch::Tensor total(double prior_loss_weight) const { return instance + prior_loss_weight * prior; }
};

// sample_losses [instances + class images] float32 with the photos first; `effective_batch` photos make a step, and
// as many class images.
LossShare share_of_loss(const torch::Tensor& sample_losses, std::int64_t instances, std::int64_t effective_batch);

}  // namespace sdtune::train
