// What this machine offers to sdtune: GPUs, driver, CUDA libraries, and why one of them cannot be used.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/core/cuda_build.h"
#include "model/core/cuda_driver.h"

namespace sdtune::model {

struct GpuReport {
  CudaDeviceInfo info;
  std::string fault;  // why it cannot be used; "" where it can
};

struct MachineReport {
  CudaDriver driver;
  CudaBuild build;
  std::string visible_devices;       // CUDA_VISIBLE_DEVICES, "" where it is unset
  std::vector<GpuReport> gpus;       // in the order of cuda:0, cuda:1, ...
  std::string device;                // what --device auto means here: "cuda:0", "cpu"; "" where it is refused
  std::string fault;                 // why `device` is "" or no GPU; "" with a usable GPU
  std::string warning;               // a GPU is there, and this build takes the CPU
  std::string libtorch;              // its version, "2.11.0"
  std::string libraries_fault;       // why LibTorch's CUDA part or our kernels do not load; "" where they do
  std::optional<int> libtorch_gpus;  // how many GPUs LibTorch itself finds; unset where its CUDA part is not loaded
  std::string nccl;                  // "2.27.7", "" where it is not loaded
};

// Loads the CUDA libraries where this build has kernels, whether there is a GPU or not.
MachineReport report_machine();

}  // namespace sdtune::model
