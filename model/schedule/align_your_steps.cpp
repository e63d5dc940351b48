#include "model/schedule/align_your_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>

#include "model/base/error.h"
#include "model/schedule/sigma_spacing.h"

namespace sdtune::model {
namespace {

constexpr std::int64_t kTrainTimesteps = 1000;
constexpr std::int64_t kSteps = 10;
// Where the ten steps begin, and where the last ends.
using Levels = std::array<double, kSteps + 1>;
constexpr Levels kStableDiffusion = {999, 850, 736, 645, 545, 455, 343, 233, 124, 24, 0};
constexpr Levels kStableDiffusionXl = {999, 845, 730, 587, 443, 310, 193, 116, 53, 13, 0};

std::vector<std::int64_t> interpolated(const SigmaTable& table, const Levels& levels, std::int64_t steps) {
  const std::vector<double> sigmas = table.interpolate({levels.begin(), levels.end()});
  std::vector<double> wanted;
  for (std::int64_t i = 0; i < steps; ++i) {
    // Step i of `steps` is at this place among the ten.
    const auto low = static_cast<std::size_t>(i * kSteps / steps);
    const double fraction = static_cast<double>(i * kSteps % steps) / static_cast<double>(steps);
    wanted.push_back(std::exp((1 - fraction) * std::log(sigmas[low]) + fraction * std::log(sigmas[low + 1])));
  }
  std::vector<std::int64_t> timesteps;
  for (const double t : table.timesteps_of(wanted)) timesteps.push_back(std::llround(t));
  return timesteps;
}

bool all_differ(const std::vector<std::int64_t>& descending) {
  return std::adjacent_find(descending.begin(), descending.end(), std::less_equal<>()) == descending.end();
}

}  // namespace

std::vector<std::int64_t> align_your_steps(const NoiseSchedule& schedule, bool is_xl, std::int64_t steps) {
  if (schedule.num_train_timesteps() != kTrainTimesteps) {
    throw ConfigError("num_train_timesteps", "does not go with align-your-steps (got " +
                                                 std::to_string(schedule.num_train_timesteps()) + "; allowed: 1000)");
  }
  const bool has_zero_snr = schedule.alphas_cumprod[-1].item<float>() == 0;  // whose last sigma would be infinite
  const SigmaTable table(finite_alphas_cumprod(schedule, has_zero_snr));
  const Levels& levels = is_xl ? kStableDiffusionXl : kStableDiffusion;
  // Not every number above the first that repeats a timestep repeats one, but a range is what a user can remember.
  std::int64_t most = 0;
  while (most < kTrainTimesteps && all_differ(interpolated(table, levels, most + 1))) ++most;
  if (steps < 1 || steps > most) {
    throw ConfigError("num_inference_steps", "is out of range for align-your-steps (got " + std::to_string(steps) +
                                                 "; allowed: 1.." + std::to_string(most) + ")");
  }
  return interpolated(table, levels, steps);
}

}  // namespace sdtune::model
