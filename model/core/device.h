// Where to compute, and in which dtype. CUDA is never linked: the first time a GPU is asked for, its driver is probed,
// and only then are libtorch_cuda.so (beside libtorch_cpu.so) and libsdtune_cuda.so (our kernels) loaded.
#pragma once

#include <torch/types.h>

#include <string>

#include "model/core/cuda_table.h"

namespace sdtune::model {

// "auto", "cpu", "cuda" or "cuda:N". auto is the first usable GPU, else the CPU. Throws ConfigError naming `where` for
// another word, and for a GPU that cannot be used: none there, driver or device too old, kernels not built; each says
// what was found and what is needed. Loads the CUDA libraries when the answer is a GPU; call it before anything else
// asks LibTorch about CUDA, which remembers the first answer.
torch::Device parse_device(const std::string& text, const std::string& where);

// "float32", "bfloat16" or "float16" (and diffusers' "no", "bf16", "fp16"). Throws ConfigError naming `where`.
torch::Dtype parse_dtype(const std::string& text, const std::string& where);
std::string dtype_name(torch::Dtype dtype);  // "float32", ...

// The same check without loading anything, for `check`: why no GPU can be used here; "" when one can.
std::string why_no_cuda();

// The fastest dtype that the device computes in: bfloat16 on a GPU from compute capability 8.0 and on a CPU with AMX,
// float16 on older GPUs, else float32 (bfloat16 without AMX is two to three times slower).
torch::Dtype fast_dtype(torch::Device device);

// The memory order that convolutions are fastest in there.
torch::MemoryFormat fast_memory_format(torch::Device device, torch::Dtype dtype);

// One line for people: "cpu (Intel(R) Xeon(R) Processor, 2 threads, AVX512-BF16)", "cuda:0 (NVIDIA H200, 139.7 GiB,
// compute capability 9.0, driver for CUDA 13.0)".
std::string describe_device(torch::Device device);

// Our kernels. Call contract: parse_device returned a GPU before. Who computes asks kernel_access.h instead.
const CudaTable& cuda_table();

// A further C symbol of libsdtune_cuda.so (the NCCL factory), under the same contract.
void* cuda_symbol(const char* name);

// The stream that LibTorch currently uses on `device`.
CudaStream current_cuda_stream(torch::Device device);

}  // namespace sdtune::model
