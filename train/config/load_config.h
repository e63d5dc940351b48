// A training configuration from its sources, in the order in which they win:
// defaults < defaults of the base < --config FILE.yaml < flags.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/options/settings.h"
#include "train/config/train_config.h"

namespace sdtune::train {

struct LoadedConfig {
  TrainConfig config;             // with origins; the option of a bad value has what it had before
  std::vector<Problem> problems;  // everything that is wrong with names, types and ranges, each with flag or file:line
};

// `config_file` may be empty. Flags may also come from Python: any setting with its origin. An empty `base` becomes the
// bundled one where the installation has it. Does not throw for users' mistakes.
LoadedConfig load_train_config(const std::filesystem::path& config_file, const std::vector<Setting>& flags);

// The same with the defaults of a published model, which need not be here, instead of the base's: family is as
// base_family says it.
LoadedConfig load_train_config_for(const std::string& family, const std::filesystem::path& config_file,
                                   const std::vector<Setting>& flags);

}  // namespace sdtune::train
