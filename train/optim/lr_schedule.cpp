#include "train/optim/lr_schedule.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "model/base/error.h"

namespace sdtune::train {

namespace {

constexpr double kPolynomialEnd = 1e-7;

constexpr std::array<std::pair<const char*, LrCurve>, 6> kCurves = {{
    {"linear", LrCurve::kLinear},
    {"cosine", LrCurve::kCosine},
    {"cosine_with_restarts", LrCurve::kCosineWithRestarts},
    {"polynomial", LrCurve::kPolynomial},
    {"constant", LrCurve::kConstant},
    {"constant_with_warmup", LrCurve::kConstantWithWarmup},
}};

double half_cosine(double turns) {
  return std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * turns)));
}

double polynomial(const LrSchedule& schedule, std::int64_t updates, double decay_steps) {
  if (updates > schedule.total_steps) return kPolynomialEnd / schedule.learning_rate;
  const double remaining = 1.0 - static_cast<double>(updates - schedule.warmup_steps) / decay_steps;
  const double range = schedule.learning_rate - kPolynomialEnd;
  return (range * std::pow(remaining, schedule.power) + kPolynomialEnd) / schedule.learning_rate;
}

}  // namespace

LrCurve parse_lr_curve(const std::string& name) {
  std::vector<std::string_view> names;
  for (const auto& [known, curve] : kCurves) {
    if (name == known) return curve;
    names.emplace_back(known);
  }
  const std::string allowed = fmt::format("{}", fmt::join(names, ", "));
  throw ConfigError("lr_scheduler", "unknown curve (got " + name + "; allowed: " + allowed + ")");
}

LrSchedule LrSchedule::from_options(const OptimOptions& options, std::int64_t total_steps,
                                    std::int64_t batches_per_step) {
  LrSchedule schedule;
  schedule.curve = parse_lr_curve(options.lr_scheduler);
  schedule.learning_rate = base_rates(options, batches_per_step).front();
  schedule.warmup_steps = options.lr_warmup_steps;
  schedule.total_steps = total_steps;
  schedule.num_cycles = options.lr_num_cycles;
  schedule.power = options.lr_power;
  if (schedule.curve == LrCurve::kPolynomial && schedule.learning_rate <= kPolynomialEnd) {
    throw ConfigError("learning_rate", "polynomial ends at 1e-7 and must begin above (got " +
                                           fmt::format("{}", schedule.learning_rate) + ")");
  }
  return schedule;
}

double LrSchedule::factor(std::int64_t updates) const {
  if (curve == LrCurve::kConstant) return 1.0;
  if (updates < warmup_steps) return static_cast<double>(updates) / static_cast<double>(warmup_steps);
  if (curve == LrCurve::kConstantWithWarmup) return 1.0;
  const double decay_steps = static_cast<double>(std::max<std::int64_t>(1, total_steps - warmup_steps));
  const double progress = static_cast<double>(updates - warmup_steps) / decay_steps;
  switch (curve) {
    case LrCurve::kLinear:
      return std::max(0.0, static_cast<double>(total_steps - updates) / decay_steps);
    case LrCurve::kCosine:
      return half_cosine(progress);
    case LrCurve::kCosineWithRestarts:
      return progress >= 1.0 ? 0.0 : half_cosine(std::fmod(static_cast<double>(num_cycles) * progress, 1.0));
    default:
      return polynomial(*this, updates, decay_steps);
  }
}

std::int64_t text_encoder_steps(const OptimOptions& options, std::int64_t total_steps) {
  return std::llround(options.train_text_encoder_frac * static_cast<double>(total_steps));
}

std::vector<double> base_rates(const OptimOptions& options, std::int64_t batches_per_step) {
  const double scale = options.scale_lr ? static_cast<double>(batches_per_step) : 1.0;
  return {options.learning_rate * scale, options.text_encoder_lr.value_or(options.learning_rate) * scale};
}

}  // namespace sdtune::train
