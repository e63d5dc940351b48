// Timesteps that were optimised for a model, in place of an even spacing: Sabour et al., "Align your steps: optimizing
// sampling schedules in diffusion models", 2024.
#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule/noise_schedule.h"

namespace sdtune::model {

// The descending timesteps of a run of `steps`, for Scheduler::set_timesteps: the authors' ten for Stable Diffusion 1
// or XL, and for other numbers of steps the levels log-linear in sigma between those, as the authors say, at the
// nearest timestep of `schedule`. Throws ConfigError for a schedule of another length than theirs, and for more steps
// than there are timesteps to tell apart.
std::vector<std::int64_t> align_your_steps(const NoiseSchedule& schedule, bool is_xl, std::int64_t steps);

}  // namespace sdtune::model
