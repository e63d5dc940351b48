// LibTorch's CUDA part and our kernels, loaded at run time and never linked, so that one program starts fast on a
// laptop and runs on a GPU.
#pragma once

#include <torch/types.h>

#include <string>

#include "model/core/cuda_table.h"

namespace sdtune::model {

// Loads libtorch_cuda.so (beside libtorch_cpu.so) and libsdtune_cuda.so, once a process; "" or why that failed.
const std::string& load_cuda();

// Why our kernels would not load, as far as is known without loading them; "" where nothing speaks against it.
std::string missing_kernels();

// load_cuda where a GPU can be used, else nothing. Called before anything computes: LibTorch remembers what its first
// question for an accelerator found, and the backward pass on a CPU asks it too.
void load_cuda_where_usable();

// Our kernels. Call contract: parse_device returned a GPU before. Who computes asks kernel_access.h instead.
const CudaTable& cuda_table();

// A further C symbol of libsdtune_cuda.so (the NCCL factory), under the same contract.
void* cuda_symbol(const char* name);

// The stream that LibTorch currently uses on `device`.
CudaStream current_cuda_stream(torch::Device device);

}  // namespace sdtune::model
