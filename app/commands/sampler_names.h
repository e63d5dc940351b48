// The short names of --sampler, and diffusers' scheduler that each stands for.
#pragma once

#include <string>
#include <vector>

#include "model/base/json.h"

namespace sdtune::app {

struct Sampler {
  std::string class_name;  // diffusers'
  Json changes;            // config keys that differ from the model's scheduler_config.json
};

// "ddim", "euler_karras", ... Karras' sigmas (Karras et al. 2022) only where diffusers' class has them.
std::vector<std::string> sampler_names();

// Call contract: one of sampler_names().
Sampler find_sampler(const std::string& name);

}  // namespace sdtune::app
