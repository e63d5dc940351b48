// Presets: the defaults that come with a base and a method, and what they set in a run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/options/preset.h"
#include "train/config/train_config.h"

namespace sdtune::train {

// Every preset of the installation: both methods, the families of base_family and the bundled base. Empty where the
// installation has no configs/.
std::vector<Preset> installed_presets();

// Whether the value of that option came from the run's preset.
bool is_of_preset(const TrainConfig& config, const std::string& option);

// The values of `config` that its preset set and nothing else overrode.
std::vector<std::pair<std::string, std::string>> values_of_preset(TrainConfig config);

// "lora_sd15.yaml: rank 16, with_prior_preservation true, ..."; empty where the base has no preset.
std::string preset_line(const TrainConfig& config);

}  // namespace sdtune::train
