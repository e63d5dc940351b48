// The number format that modules hold their weights in.
#pragma once

#include <torch/types.h>

#include <string>

namespace sdtune::train {

// mixed_precision's "no", "fp16" and "bf16" as float32, float16 and bfloat16. Throws ConfigError for anything else.
torch::Dtype compute_dtype(const std::string& mixed_precision);

}  // namespace sdtune::train
