// What this machine offers to sdtune: GPUs, driver, CUDA libraries, and why one of them cannot be used; processor,
// memory, network, disk, limits and clock.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/core/cuda_build.h"
#include "model/core/cuda_driver.h"
#include "model/machine/machine_check.h"

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
  std::vector<MachineCheck> checks;  // of all of it, in the order in which doctor prints them

  bool has_failed() const;  // one of the checks
};

// Loads the CUDA libraries where this build has kernels, whether there is a GPU or not. `run_folder`: whose disk is
// looked at; need not be there yet. The environment variable SDTUNE_SYSTEM_ROOT replaces / for the kernel's files, for
// tests.
MachineReport report_machine(const std::filesystem::path& run_folder);

}  // namespace sdtune::model
