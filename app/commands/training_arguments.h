// What `train`, `check`, `doctor` and `prepare` have in common: the options of a training run, from flags and --config.
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

  // `own`: what the command has besides.
  FieldList fields(FieldList own = {});
  // Takes its settings and those of `own` out of `arguments`, and leaves loaded.problems with all that is wrong with
  // them.
  void load(Arguments& arguments, const FieldList& own = {});
  // After load(): the same with the defaults of a published model, which need not be here.
  void load_for(const std::string& family);
  // For a command that reads --config again: a problem where there is nothing to read the second time.
  void require_second_reading(std::vector<Problem>& problems) const;

 private:
  void keep(train::LoadedConfig config);

  std::vector<Setting> flags_;
  std::vector<Problem> problems_of_arguments_;
};

}  // namespace sdtune::app
