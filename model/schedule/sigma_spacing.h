// Noise levels sigma = sqrt((1 - abar) / abar) of a run, and curves through them (Karras et al., "Elucidating the
// design space of diffusion-based generative models", 2022). Computed in float64 from float32 tables, as NumPy does in
// diffusers.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/json.h"
#include "model/schedule/scheduler_config.h"

namespace sdtune::model {

// The sigmas of all training timesteps, ascending.
class SigmaTable {
 public:
  explicit SigmaTable(const torch::Tensor& alphas_cumprod);

  double first() const { return sigmas_.front(); }
  double last() const { return sigmas_.back(); }
  const std::vector<double>& log_sigmas() const { return log_sigmas_; }
  // At timesteps between the integers, linearly.
  std::vector<double> interpolate(const std::vector<double>& timesteps) const;
  // The timesteps at which log sigma, taken linearly between the integers, has the given values.
  std::vector<double> timesteps_of(const std::vector<double>& sigmas) const;

 private:
  double timestep_of(double sigma) const;
  std::vector<double> sigmas_;
  std::vector<double> log_sigmas_;
};

// The curve that replaces the interpolated sigmas.
enum class SigmaCurve { kNone, kKarras, kExponential, kLu };

// The keys use_karras_sigmas, use_exponential_sigmas, use_beta_sigmas (refused).
ConfigKeys sigma_curve_keys();
// Of a config resolved with `keys`. Throws WeightError where two curves are asked for.
SigmaCurve sigma_curve(const Json& config, const ConfigKeys& keys, const std::string& where);

// Why a config with this curve takes no given timesteps; "" where it does.
std::string curve_fault(SigmaCurve curve);

// `count` sigmas from max to min on the curve. The config's sigma_min and sigma_max replace the ends of Karras and
// exponential curves.
std::vector<double> curve_sigmas(SigmaCurve curve, double min, double max, std::int64_t count, const Json& config);

// alphas_cumprod of a schedule whose last entry, zero after rescale_betas_zero_snr, is replaced by 2^-24, so that sigma
// stays finite.
torch::Tensor finite_alphas_cumprod(const NoiseSchedule& schedule, bool rescaled_to_zero_snr);

// The last sigma of a run: 0, or that of timestep 0 for final_sigmas_type "sigma_min".
double final_sigma(const Json& config, const SigmaTable& table);

// Throws ConfigError where two neighbours of a run's `sigmas` (without the final one) are the same float32: a solver
// that divides by the way between them would give no numbers.
void require_distinct_sigmas(const std::string& class_name, const std::vector<double>& sigmas);

// The place of timestep t in `timesteps`. Of two equal ones it is the second, as in diffusers, so that a run that
// starts in the middle leaves out no noise level; a run from the beginning starts at 0.
std::int64_t index_of_timestep(const torch::Tensor& timesteps, double t);

}  // namespace sdtune::model
