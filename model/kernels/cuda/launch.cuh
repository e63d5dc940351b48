// The one place that starts kernels: scripts/check_layers.py refuses a launch anywhere else.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "model/core/cuda_table.h"

namespace sdtune::model {

inline constexpr int kThreads = 256;
inline constexpr int kWarp = 32;

// Blocks for `count` items, few enough that a grid-stride loop stays worthwhile.
inline unsigned grid_for(std::int64_t count, int items_per_thread = 1) {
  const std::int64_t per_block = std::int64_t{kThreads} * items_per_thread;
  return static_cast<unsigned>(std::clamp<std::int64_t>((count + per_block - 1) / per_block, 1, 65536));
}

// Makes a device the current one, and at the end the former one again.
class DeviceScope {
 public:
  explicit DeviceScope(int device) : device_(device) {
    status_ = cudaGetDevice(&former_);
    if (status_ == cudaSuccess && former_ != device_) status_ = cudaSetDevice(device_);
  }
  ~DeviceScope() {
    if (status_ == cudaSuccess && former_ != device_) static_cast<void>(cudaSetDevice(former_));
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  cudaError_t status() const { return status_; }

 private:
  int device_;
  int former_ = 0;
  cudaError_t status_;
};

// kernel<<<grid, kThreads>>>(arguments...) on the stream, with its device current. Throws std::runtime_error, and
// KernelOutOfMemory.
template <typename... Parameters, typename... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, const CudaStream& stream,
            Arguments... arguments) {
  const DeviceScope scope(stream.device);
  cudaError_t status = scope.status();
  if (status == cudaSuccess) {
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = dim3(kThreads);
    config.stream = static_cast<cudaStream_t>(stream.handle);
    status = cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
  }
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // or whoever asks next takes it for their own
  const std::string text = "kernel " + std::string(name) + " on cuda:" + std::to_string(stream.device) + ", grid " +
                           std::to_string(grid.x) + " x " + std::to_string(grid.y) + " x " + std::to_string(grid.z) +
                           ": " + cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation) throw KernelOutOfMemory(text);
  const bool is_of_this = status == cudaErrorInvalidDevice || status == cudaErrorInvalidValue;
  throw std::runtime_error(text + (is_of_this ? "" : " (of this or an earlier operation)"));
}

}  // namespace sdtune::model
