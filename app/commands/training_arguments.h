// What `train` and `check` have in common: the options of a training run, from flags and --config.
#pragma once

#include <string>
#include <vector>

#include "app/cli/arguments.h"
#include "train/config/load_config.h"

namespace sdtune::app {

struct TrainingArguments {
  std::string config_file;      // --config
  train::TrainConfig declared;  // only declares the flags and their defaults
  train::LoadedConfig loaded;   // after load()

  FieldList fields();
  // Takes its settings out of `arguments`, and leaves loaded.problems with all that is wrong with them.
  void load(Arguments& arguments);
};

}  // namespace sdtune::app
