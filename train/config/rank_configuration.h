// What several ranks compare before they train together.
#pragma once

#include <string>

#include "train/config/train_config.h"

namespace sdtune::train {

// What every rank must agree on, as lines of text: the options, but not which device a rank has, only whether it is a
// GPU, since a GPU's NCCL and a CPU's Gloo do not meet; nor what the first rank decides alone: launchers of several
// machines take that from their own disks.
std::string rank_configuration(TrainConfig config, bool on_gpu);

}  // namespace sdtune::train
