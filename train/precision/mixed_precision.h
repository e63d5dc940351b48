// The number format of a run's computation.
#pragma once

#include <torch/types.h>

#include <string>

namespace sdtune::train {

// Whether the option leaves the format to the device: default, auto.
bool is_left_to_device(const std::string& asked);

// What the option mixed_precision means on this device: "no", "bf16" or "fp16". What is left to the device is
// `recorded`, the format of the checkpoint that a run resumes, where there is one ("" for none), so that a resumed run
// goes on in its format wherever it is; else as choose_dtype (compute_dtype.h) says for training.
std::string resolve_mixed_precision(const std::string& asked, torch::Device device, const std::string& recorded);

}  // namespace sdtune::train
