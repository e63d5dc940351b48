#include "train/config/checkpoint_options.h"

namespace sdtune::train {

TrainFieldList CheckpointOptions::fields() {
  TrainFieldList list;
  TrainOptionGroup group(list, "Checkpoints");
  group.add("checkpointing_steps", &checkpointing_steps, Resume::kMayChange, "Optimizer steps between checkpoints.")
      .unit("steps")
      .at_least(1);
  group
      .add("checkpoints_total_limit", &checkpoints_total_limit, Resume::kMayChange,
           "Number of newest checkpoints to keep; unset: all.")
      .at_least(1);
  group
      .add("resume_from_checkpoint", &resume_from_checkpoint, Resume::kMayChange,
           "Checkpoint to resume from: latest (an error if there is none), auto (a new run if there is none) or a "
           "folder; empty: a new run.")
      .placeholder("latest|auto|DIR");
  return list;
}

}  // namespace sdtune::train
