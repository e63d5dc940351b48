// What the NVIDIA driver says, asked through libcuda.so.1 and nothing else, before any CUDA library is loaded; and what
// the machine shows without a driver.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sdtune::model {

struct CudaDeviceInfo {
  std::string name;
  int capability = 0;  // 10 * major + minor
  std::uint64_t memory_bytes = 0;
};

struct CudaDriver {
  bool found = false;                   // libcuda.so.1 is there and NVIDIA's
  int version = 0;                      // the newest CUDA it supports: 1000 * major + 10 * minor
  int status = 0;                       // of cuInit; 0 is success, 100 no device
  std::string status_text;              // the driver's words for another status
  std::string release;                  // "580.82.07" of the kernel module, "" where it is not loaded
  std::vector<CudaDeviceInfo> devices;  // in the order of cuda:0, cuda:1, ...
  std::vector<std::string> hardware;    // PCI identifiers of NVIDIA's GPUs, "10de:2684", with or without a driver
  std::string visible_devices;          // CUDA_VISIBLE_DEVICES
  bool hidden = false;                  // it hides every GPU
  bool in_container = false;
};

// Asked once a process. The environment variable SDTUNE_SYSTEM_ROOT replaces / for PCI and container files, for tests.
const CudaDriver& cuda_driver();

// NVIDIA's display and 3D controllers under `root`/sys/bus/pci/devices. Empty where PCI is not shown (WSL).
std::vector<std::string> find_nvidia_hardware(const std::filesystem::path& root);

// "9.0" for 90, "12.0" for 120.
std::string capability_text(int capability);

}  // namespace sdtune::model
