// The forward process q(x_t | x_0) = N(sqrt(abar_t) x_0, (1 - abar_t) I) over T discrete timesteps (Ho et al.,
// "Denoising diffusion probabilistic models", 2020), shared by training and by every scheduler.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/json.h"

namespace sdtune::model {

// The keys of a scheduler_config.json that define the betas, with diffusers' names and defaults.
struct BetaOptions {
  std::int64_t num_train_timesteps = 1000;
  double beta_start = 0.0001;
  double beta_end = 0.02;
  std::string beta_schedule = "linear";  // linear, scaled_linear, squaredcos_cap_v2
  std::vector<double> trained_betas;     // given betas instead of a curve; empty = none
  bool rescale_betas_zero_snr = false;   // Lin et al., "Common diffusion noise schedules and sample steps are flawed"
};

// Per-timestep tables, [T] float32. The methods take a batch x [B, ...], and timesteps [B] int64 on the tables' device;
// they compute in float32, round to x's dtype, and never synchronise with a GPU.
struct NoiseSchedule {
  torch::Tensor betas;
  torch::Tensor alphas_cumprod;

  explicit NoiseSchedule(const BetaOptions& options);
  // Reads the beta keys of any scheduler's config and leaves the others alone (make_scheduler checks those). Throws
  // WeightError naming `where`, key and allowed values.
  static NoiseSchedule from_config(const Json& scheduler_config, const std::string& where = "scheduler_config.json");

  std::int64_t num_train_timesteps() const { return betas.size(0); }
  // abar behind the last step of a run: 1, or that of timestep 0. 0-dim.
  torch::Tensor final_alpha_cumprod(bool set_alpha_to_one) const;
  NoiseSchedule to(const torch::Device& device) const;

  // sqrt(abar_t) x0 + sqrt(1 - abar_t) noise, in x0's dtype.
  torch::Tensor add_noise(const torch::Tensor& x0, const torch::Tensor& noise, const torch::Tensor& timesteps) const;
  // The v target: sqrt(abar_t) noise - sqrt(1 - abar_t) x0.
  torch::Tensor velocity(const torch::Tensor& x0, const torch::Tensor& noise, const torch::Tensor& timesteps) const;
  // Signal-to-noise ratio abar_t / (1 - abar_t): [B] float32.
  torch::Tensor snr(const torch::Tensor& timesteps) const;
};

}  // namespace sdtune::model
