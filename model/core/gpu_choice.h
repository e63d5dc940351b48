// Which GPU can be used, and why another cannot: one rule for train, sample, check and doctor. Loads nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "model/core/cuda_build.h"
#include "model/core/cuda_driver.h"

namespace sdtune::model {

// What --device auto finds.
struct GpuChoice {
  std::optional<std::size_t> index;  // the first usable GPU
  std::string fault;    // unset index: a GPU is there and cannot be used, with what is missing; "" where there is none
  std::string warning;  // a GPU is there, and this build has no CUDA kernels: the CPU is taken
};

GpuChoice choose_gpu(const CudaDriver& driver, const CudaBuild& build);

// From compute capability 8.0; before, LibTorch computes it slowly or not at all.
bool computes_bfloat16(const CudaDeviceInfo& gpu);

// Why cuda:`index` cannot be used: what was found, what is missing, what is needed. "" when it can.
std::string fault_of_gpu(const CudaDriver& driver, const CudaBuild& build, std::size_t index);

// Why no GPU can be used at all, by driver, machine and build; "" where the driver lists one that may be asked for.
std::string fault_of_driver(const CudaDriver& driver, const CudaBuild& build);

}  // namespace sdtune::model
