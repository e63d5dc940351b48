// The operators of ours that have a kernel, on a device and in each number format, beside LibTorch's in double on the
// CPU.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "train/prove/part_result.h"

namespace sdtune::train {

// Group norm, GEGLU and their gradients, the gradient's norm, AdamW with float32 and 8-bit moments, random numbers;
// then how each kernel proved itself (model/core/kernel_proof.h). Where the device has kernels (`has_kernels`), each of
// them must have run. An operator that throws has a check of infinite value.
std::vector<Check> compare_kernels(torch::Device device, bool has_kernels);

}  // namespace sdtune::train
