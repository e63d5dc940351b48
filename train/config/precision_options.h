// The options of number formats, and of what happens when numbers stop being finite.
#pragma once

#include <cstdint>
#include <string>

#include "train/config/train_option_group.h"

namespace sdtune::train {

struct PrecisionOptions {
  std::string mixed_precision = "default";  // no = float32, fp16, bf16; masters are float32 always
  bool allow_tf32 = false;
  std::int64_t max_skipped_steps = 20;  // in a row
  bool half_precision_gradient_sums = false;

  TrainFieldList fields();
};

}  // namespace sdtune::train
