// Classifier-free guidance: Ho & Salimans, "Classifier-free diffusion guidance", 2022.
#pragma once

#include <torch/types.h>

namespace sdtune::model {

// `predictions` [2B, ...] holds the unconditional ones, then the conditional ones. Gives [B, ...]: unconditional +
// scale * (conditional - unconditional), and with `rescale` above 0 that much of it brought back to the conditional
// one's standard deviation per sample (Lin et al., "Common diffusion noise schedules and sample steps are flawed",
// section 3.4).
torch::Tensor guided_prediction(const torch::Tensor& predictions, double scale, double rescale);

}  // namespace sdtune::model
