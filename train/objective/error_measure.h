// How far off each number of a prediction is: its square, or a Huber loss that counts outliers less (Khrapov et al.,
// "Improving diffusion models's data-corruption resistance using scheduled pseudo-Huber loss", 2024). The names and the
// factors are those of kohya's and diffusers' scripts, so that a rate found there keeps its meaning.
#pragma once

#include <torch/types.h>

#include "model/schedule/noise_schedule.h"
#include "train/config/objective_options.h"

namespace sdtune::train {

// Where a Huber loss turns from a square into a line, for timesteps [B]: [B] float32. With T training timesteps,
// c = huber_c and sigma = sqrt((1 - abar) / abar):
//   constant     c
//   exponential  c^(t / T), from 1 without noise to c
//   snr          (1 - c) / (1 + sigma)^2 + c, from 1 without noise to c
torch::Tensor huber_widths(const ObjectiveOptions& options, const model::NoiseSchedule& schedule,
                           const torch::Tensor& timesteps);

// difference [B, ...] float32 -> [B, ...]; `widths` [B] is used by the Huber losses alone. With d the difference:
//   l2         d^2
//   huber      2 c (sqrt(d^2 + c^2) - c)
//   smooth_l1  2 (sqrt(d^2 + c^2) - c)
torch::Tensor element_errors(const std::string& loss_type, const torch::Tensor& difference,
                             const torch::Tensor& widths);

}  // namespace sdtune::train
