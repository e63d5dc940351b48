// The number format of a run's computation.
#pragma once

#include <torch/types.h>

#include <string>

namespace sdtune::train {

// What the option mixed_precision means on this device: "no", "bf16" or "fp16". `auto` is `recorded`, the format of the
// checkpoint that a run resumes, where there is one ("" for none); else bf16 on a GPU from compute capability 8.0, fp16
// on an older one, and no, which is float32, on a CPU.
std::string resolve_mixed_precision(const std::string& asked, torch::Device device, const std::string& recorded);

}  // namespace sdtune::train
