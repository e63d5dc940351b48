// How many optimizer steps a run has.
#pragma once

#include <cstdint>
#include <string>

#include "train/config/run_options.h"

namespace sdtune::train {

struct TotalSteps {
  std::int64_t steps = 0;
  std::string origin;  // "num_train_epochs", ..; empty: max_train_steps itself was given
};

// `photos` are different ones, `epoch_size` are shown in an epoch (repeats counted), `effective` in a step.
TotalSteps total_steps(const RunOptions& options, std::int64_t photos, std::int64_t epoch_size, std::int64_t effective);

}  // namespace sdtune::train
