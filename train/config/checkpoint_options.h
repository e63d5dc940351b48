// The options of saving and going on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/config/train_option_group.h"

namespace sdtune::train {

struct CheckpointOptions {
  std::int64_t checkpointing_steps = 100;                   // optimizer steps
  std::optional<std::int64_t> checkpoints_total_limit = 2;  // unset: all are kept
  std::string resume_from_checkpoint;                       // empty, latest, auto, or a folder

  TrainFieldList fields();
};

}  // namespace sdtune::train
