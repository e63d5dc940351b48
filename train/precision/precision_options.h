// The options of number formats, and of what happens when numbers stop being finite.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/field.h"

namespace sdtune::train {

struct PrecisionOptions {
  std::string mixed_precision = "no";  // no = float32, fp16, bf16; masters are float32 always
  bool allow_tf32 = false;
  std::int64_t max_skipped_steps = 20;  // in a row

  FieldList fields();
};

}  // namespace sdtune::train
