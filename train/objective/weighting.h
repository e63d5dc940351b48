// How much each timestep counts: min-SNR weighting (Hang et al., "Efficient diffusion training via min-SNR weighting
// strategy", ICCV 2023).
#pragma once

#include <torch/types.h>

#include "model/schedule/prediction.h"

namespace sdtune::train {

// A weight a sample, [B] float32, for signal-to-noise ratios [B]: min(snr, gamma) / snr for epsilon,
// min(snr, gamma) / (snr + 1) for v, min(snr, gamma) for x0. Finite also where snr is 0 (zero terminal SNR).
torch::Tensor min_snr_weights(model::PredictionType type, const torch::Tensor& snr, double gamma);

}  // namespace sdtune::train
