// The six curves of the learning rate, as diffusers.optimization.get_scheduler has them. A rate is a pure function of
// the number of updates done, so resuming needs no scheduler state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/config/optim_options.h"

namespace sdtune::train {

enum class LrCurve { kLinear, kCosine, kCosineWithRestarts, kPolynomial, kConstant, kConstantWithWarmup };

// The curve of an lr_scheduler name. Throws ConfigError with the names allowed.
LrCurve parse_lr_curve(const std::string& name);

struct LrSchedule {
  LrCurve curve = LrCurve::kConstant;
  double learning_rate = 0;  // polynomial ends at 1e-7 absolute, so its factor depends on the rate
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;  // optimizer steps of the whole run
  std::int64_t num_cycles = 1;   // of cosine_with_restarts
  double power = 1.0;            // of polynomial

  // Of `options`; `batches_per_step` is accumulation x batch x ranks, by which scale_lr multiplies.
  static LrSchedule from_options(const OptimOptions& options, std::int64_t total_steps, std::int64_t batches_per_step);

  // What every rate is multiplied by in the update after `updates` others (the first has 0).
  double factor(std::int64_t updates) const;
};

// The first steps of `total_steps`, in which the text encoders are trained: train_text_encoder_frac of them, rounded.
std::int64_t text_encoder_steps(const OptimOptions& options, std::int64_t total_steps);

// The rates of UNet and text encoder before the curve.
std::vector<double> base_rates(const OptimOptions& options, std::int64_t batches_per_step);

}  // namespace sdtune::train
