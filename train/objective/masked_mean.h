// What of a picture counts: a mask that is 1 on the subject weighs the errors of the latent's places, as OneTrainer and
// kohya's scripts do.
#pragma once

#include <torch/types.h>

#include "train/objective/objective_options.h"

namespace sdtune::train {

// errors [B, C, h, w] and mask [B, 1, h, w] in [0, 1], float32 -> [B]. A place weighs as much as its mask, and at least
// unmasked_weight. The mean is over all places, so the loss falls with the subject's area; with
// normalize_masked_area_loss it is divided by the mean weight, so it does not.
torch::Tensor masked_mean(const torch::Tensor& errors, const torch::Tensor& mask, const ObjectiveOptions& options);

}  // namespace sdtune::train
