// Options that a user gave and that the run does not use.
#pragma once

#include <vector>

#include "model/base/error.h"
#include "train/config/train_config.h"

namespace sdtune::train {

// A warning for each option that changes nothing as another one is, such as text_encoder_lr without train_text_encoder.
// Not for values of a preset and defaults, nor for those of a file beside a flag that switches off what they are for.
// And one for class_data_dir or output that is the folder of the photos.
std::vector<Problem> option_warnings(const TrainConfig& config);

}  // namespace sdtune::train
