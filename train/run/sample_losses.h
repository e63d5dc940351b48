// The forward pass of a step: the loss of each of its samples.
#pragma once

#include <torch/types.h>

#include "train/run/run.h"
#include "train/run/step_inputs.h"

namespace sdtune::train {

// The loss of each sample, [B] float32, with gradients to the trainable parameters. With dco_beta those of the photos
// count by how they compare with the base's (train/objective/direct_consistency.h), which a forward pass of the photos
// without gradients gives.
torch::Tensor sample_losses(Run& run, const MicroInputs& inputs);

}  // namespace sdtune::train
