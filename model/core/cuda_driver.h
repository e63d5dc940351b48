// What the NVIDIA driver says, asked through libcuda.so.1 and nothing else, before any CUDA library is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sdtune::model {

struct CudaDeviceInfo {
  std::string name;
  int capability = 0;  // 10 * major + minor
  std::uint64_t memory_bytes = 0;
};

struct CudaDriver {
  int version = 0;    // the newest CUDA it supports: 1000 * major + 10 * minor; 0 without a driver
  std::string fault;  // why there is no device, "" when there is one
  std::vector<CudaDeviceInfo> devices;
};

// Asked once a process.
const CudaDriver& cuda_driver();

// "9.0" for 90, "12.0" for 120.
std::string capability_text(int capability);

// Why LibTorch 2.11 for CUDA 13.0 and our kernels for `architectures` (ended by 0) with PTX for `ptx` (0 = none) cannot
// run on this device, with what is needed; "" when they can.
std::string why_unusable(const CudaDeviceInfo& device, const std::int32_t* architectures, std::int32_t ptx);
// The same for the driver.
std::string why_unusable(const CudaDriver& driver);

}  // namespace sdtune::model
