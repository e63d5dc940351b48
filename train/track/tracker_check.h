// Whether what report_to and notify name can work on this machine, before the run starts.
#pragma once

#include <string>
#include <vector>

#include "model/base/error.h"
#include "train/config/observe_options.h"

namespace sdtune::train {

// Those of report_to that a side process serves: wandb, mlflow, trackio. All of them for `all`, of which those that are
// not installed are left out.
struct SideTrackers {
  std::vector<std::string> names;
  bool optional = false;
};
SideTrackers side_trackers(const ObserveOptions& options);

bool reports_to_tensorboard(const ObserveOptions& options);

// The interpreter and the script as a command line; a fault in `problems`, which names `option`, where one is missing.
std::vector<std::string> script_words(const std::string& script, const std::string& option,
                                      std::vector<Problem>& problems);

// What is missing: an interpreter, a script of the installation, a tracker's package. Asks the interpreter.
std::vector<Problem> tracker_problems(const ObserveOptions& options);

}  // namespace sdtune::train
