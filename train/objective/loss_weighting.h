// How much each timestep and each place of an image counts in the loss.
#pragma once

#include <torch/types.h>

#include "model/schedule/prediction.h"
#include "train/config/objective_options.h"

namespace sdtune::train {

// Min-SNR weighting (Hang et al., "Efficient diffusion training via min-SNR weighting strategy", ICCV 2023): a weight a
// sample, [B] float32, for signal-to-noise ratios [B]: min(snr, gamma) / snr for epsilon, min(snr, gamma) / (snr + 1)
// for v, min(snr, gamma) for x0. Finite also where snr is 0 (zero terminal SNR).
torch::Tensor min_snr_weights(model::PredictionType type, const torch::Tensor& snr, double gamma);

// The mean of each sample: [B, C, h, w] -> [B]. On a GPU in the memory order of the errors, and so the gradient.
torch::Tensor mean_of_samples(const torch::Tensor& errors);

// A mask that is 1 on the subject weighs the errors of the latent's places, as OneTrainer and kohya's scripts do.
// errors [B, C, h, w] and mask [B, 1, h, w] in [0, 1], float32 -> [B]. A place weighs as much as its mask, and at least
// unmasked_weight. The mean is over all places, so the loss falls with the subject's area; with
// normalize_masked_area_loss it is divided by the mean weight, so it does not.
torch::Tensor masked_mean(const torch::Tensor& errors, const torch::Tensor& mask, const ObjectiveOptions& options);

}  // namespace sdtune::train
