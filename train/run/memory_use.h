// How much memory a run has needed.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace sdtune::train {

// The highest so far, in bytes: allocated on a GPU, resident of the process on a CPU.
std::int64_t max_memory_bytes(torch::Device device);

}  // namespace sdtune::train
