// Which of the T training timesteps a run visits (Lin et al., "Common diffusion noise schedules and sample steps are
// flawed", table 2). Rounding is NumPy's, to the nearest, halves to even, so that the integers are diffusers'.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/schedule/scheduler_config.h"

namespace sdtune::model {

// The keys timestep_spacing (with the class's default) and steps_offset.
ConfigKeys spacing_keys(const std::string& default_spacing);

// numpy.linspace(first, last, count).
std::vector<double> linear_ramp(double first, double last, std::int64_t count);

// T, T - step, ... above 0, each rounded, less one, where step = T / count: "trailing" from `from` downwards. Of
// from = T that are exactly `count`.
std::vector<double> trailing_timesteps(std::int64_t from, double step);

// Descending timesteps of a run: linspace over 0..T-1 (not rounded), leading (multiples of T / steps, plus `offset`),
// or trailing.
std::vector<double> spaced_timesteps(const std::string& spacing, std::int64_t num_train_timesteps, std::int64_t steps,
                                     std::int64_t offset);

// {a, b, c} -> {a, b, b, c, c}: levels where one step ends and the next begins are visited twice.
std::vector<double> visited_twice(const std::vector<double>& levels);

void round_all(std::vector<double>& values);

// As a 1-D tensor on the CPU, int64 or float32.
torch::Tensor integer_tensor(const std::vector<double>& values);
torch::Tensor float_tensor(const std::vector<double>& values);

}  // namespace sdtune::model
