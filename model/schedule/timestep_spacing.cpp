#include "model/schedule/timestep_spacing.h"

#include <torch/types.h>

#include <cmath>

namespace sdtune::model {

ConfigKeys spacing_keys(const std::string& default_spacing) {
  return {{"timestep_spacing", default_spacing, {"linspace", "leading", "trailing"}}, {"steps_offset", 0, {}, 0, 1000}};
}

std::vector<double> linear_ramp(double first, double last, std::int64_t count) {
  std::vector<double> out(static_cast<std::size_t>(count), first);
  const double step = count > 1 ? (last - first) / static_cast<double>(count - 1) : 0.0;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(i) * step + first;
  if (count > 1) out.back() = last;
  return out;
}

std::vector<double> trailing_timesteps(std::int64_t from, double step) {
  // numpy.arange(from, 0, -step) adds multiples of the rounded difference of its first two values.
  const auto start = static_cast<double>(from);
  const double difference = (start - step) - start;
  const auto count = static_cast<std::int64_t>(std::ceil(start / step));
  std::vector<double> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const double timestep = std::nearbyint(start + static_cast<double>(i) * difference) - 1;
    // Where the division is rounded up (61 steps of 1000), NumPy has one more value, 0. There is no timestep -1.
    if (timestep >= 0) out.push_back(timestep);
  }
  return out;
}

std::vector<double> spaced_timesteps(const std::string& spacing, std::int64_t num_train_timesteps, std::int64_t steps,
                                     std::int64_t offset) {
  if (spacing == "trailing") {
    return trailing_timesteps(num_train_timesteps,
                              static_cast<double>(num_train_timesteps) / static_cast<double>(steps));
  }
  std::vector<double> out;
  if (spacing == "linspace") {
    out = linear_ramp(0, static_cast<double>(num_train_timesteps - 1), steps);
  } else {
    TORCH_CHECK(spacing == "leading", "timestep_spacing ", spacing);
    const std::int64_t ratio = num_train_timesteps / steps;
    for (std::int64_t i = 0; i < steps; ++i) out.push_back(static_cast<double>(i * ratio + offset));
  }
  return {out.rbegin(), out.rend()};
}

std::vector<double> visited_twice(const std::vector<double>& levels) {
  std::vector<double> out = {levels.front()};
  for (std::size_t i = 1; i < levels.size(); ++i) out.insert(out.end(), 2, levels[i]);
  return out;
}

void round_all(std::vector<double>& values) {
  for (double& value : values) value = std::nearbyint(value);
}

torch::Tensor integer_tensor(const std::vector<double>& values) {
  return torch::tensor(values, torch::kFloat64).to(torch::kInt64);
}

torch::Tensor float_tensor(const std::vector<double>& values) {
  return torch::tensor(values, torch::kFloat64).to(torch::kFloat32);
}

}  // namespace sdtune::model
