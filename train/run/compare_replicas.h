// Whether all ranks start from the same files.
#pragma once

#include "train/config/train_config.h"
#include "train/dist/process_group.h"
#include "train/preflight/preflight.h"

namespace sdtune::train {

// Compares the base's files and the photos with captions and masks, by content. Every rank throws the same ConfigError
// where they differ, in one line: the ranks, and what each has otherwise than rank 0. Nothing was written before. Fills
// in preflight.resume.base_hash. One rank compares nothing.
void compare_replicas(ProcessGroup& group, const TrainConfig& config, Preflight& preflight);

}  // namespace sdtune::train
