// The names of the option `sampler`, and diffusers' scheduler that each stands for.
#pragma once

#include <string>
#include <vector>

#include "model/base/json.h"

namespace sdtune::model {

struct Sampler {
  std::string class_name;         // diffusers'
  Json changes;                   // config keys that differ from the model's scheduler_config.json
  bool aligns_its_steps = false;  // runs over the timesteps of model/schedule/align_your_steps.h
};

// "ddim", "euler_karras", ...: a solver, and behind it the schedule where it is not the solver's usual one. A schedule
// is there only where diffusers' class has it: karras and exponential (curves through the sigmas), trailing (which
// others call SGM uniform) and ays ("align your steps").
std::vector<std::string> sampler_names();

// Call contract: one of sampler_names().
Sampler find_sampler(const std::string& name);

}  // namespace sdtune::model
