// Whether all ranks compute in the same number format.
#pragma once

#include <torch/types.h>

#include "train/config/train_config.h"
#include "train/dist/process_group.h"
#include "train/resume/resume_point.h"

namespace sdtune::train {

// Where mixed_precision is left to the devices, kinds of processors or GPUs may choose different formats, whose
// gradients cannot be summed. Every rank throws the same ConfigError then. `resume`: what all ranks resume from.
void agree_on_format(ProcessGroup& group, const TrainConfig& config, torch::Device device, const ResumePoint& resume);

}  // namespace sdtune::train
