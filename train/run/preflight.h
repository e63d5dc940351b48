// What would go wrong: everything that can be known before training, found in one go.
#pragma once

#include <vector>

#include "model/base/error.h"
#include "train/config/train_config.h"
#include "train/data/dataset_doctor.h"

namespace sdtune::train {

// Every fault of the configuration and of what it points to: photos, captions, base, tokenizer, output folder, resume
// path, disk space, device. Empty means that `train` will start. Reads photos fully and weight headers only, loads no
// model, writes nothing and is done in under two seconds.
std::vector<Problem> find_problems(const TrainConfig& config);

// The same, with what the photos should be looked at for in `advice`: warnings, which stop nothing.
std::vector<Problem> find_problems(const TrainConfig& config, Diagnosis& advice);

// Throws them, if there are any: CheckpointError when nothing but the checkpoint to go on from is missing, else
// ConfigError.
void refuse_problems(const std::vector<Problem>& problems);

}  // namespace sdtune::train
