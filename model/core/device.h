// Where to compute, and in which dtype.
#pragma once

#include <torch/types.h>

#include <string>

namespace sdtune::model {

// "auto", "cpu", "cuda" (cuda:0) or "cuda:N". auto is the first usable GPU, and the CPU where there is no GPU, or where
// this build has no CUDA kernels (device_warning). Throws ConfigError naming `where` for another word, and for a GPU
// that cannot be used, with auto too: none there, driver or GPU too old, kernels not built or not loading; each says
// what was found and what is needed. Loads the CUDA libraries where a GPU can be used, and makes the GPU this thread's
// own.
torch::Device parse_device(const std::string& text, const std::string& where);

// The same answer and errors without loading anything, for `check`.
torch::Device find_device(const std::string& text, const std::string& where);

// What a user should know of the device that `text` means: a GPU is there, and auto takes the CPU. "" for nothing.
std::string device_warning(const std::string& text);

// Whether auto is a GPU.
bool has_usable_gpu();

// "float32", "bfloat16" or "float16" (and diffusers' "no", "bf16", "fp16"). Throws ConfigError naming `where`.
torch::Dtype parse_dtype(const std::string& text, const std::string& where);
std::string dtype_name(torch::Dtype dtype);  // "float32", ...

// What a computation that says nothing else runs in: bfloat16 on a GPU from compute capability 8.0, float16 on an older
// one, float32 on a CPU.
torch::Dtype default_dtype(torch::Device device);

// The memory order that convolutions are fastest in there.
torch::MemoryFormat fast_memory_format(torch::Device device, torch::Dtype dtype);

// One line for people: "cpu (Intel(R) Xeon(R) Processor, 2 threads, AVX512-BF16)", "cuda:0 (NVIDIA H200, 139.7 GiB,
// compute capability 9.0, driver for CUDA 13.0)".
std::string describe_device(torch::Device device);

}  // namespace sdtune::model
