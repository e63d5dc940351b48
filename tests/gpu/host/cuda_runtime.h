// Stands for CUDA's header where kernels are compiled for the CPU, so that every .cu compiles with g++ as it is. Blocks
// run one by one, a fiber a thread; barriers and warp shuffles are rendezvous of the fibers (host_gpu.h). It says
// nothing about speed, the order of streams or real races.
#pragma once

#include <math.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>

#include "tests/gpu/host/host_gpu.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
// One copy, poisoned before each block: all thread-local memory of the program or library that holds the kernels.
#define __shared__ static thread_local

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorLaunchFailure = 719,
  cudaErrorInvalidDevice = 101
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
using cudaStream_t = void*;

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};

inline host_gpu::Index& threadIdx = host_gpu::position.thread;
inline host_gpu::Index& blockIdx = host_gpu::position.block;
inline host_gpu::Index& gridDim = host_gpu::position.grid;

cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetLastError();
const char* cudaGetErrorString(cudaError_t status);
cudaError_t cudaMalloc(void** memory, std::size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);

template <typename T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}

inline void __syncthreads(std::source_location place = std::source_location::current()) {
  host_gpu::wait_for_block(place);
}

// A value of another lane of the warp; out of range one's own.
template <typename T>
T host_shuffle(T value, int lane, std::source_location place) {
  static_assert(sizeof(T) <= sizeof(host_gpu::Slot));
  host_gpu::Slot mine{};
  std::memcpy(&mine, &value, sizeof(T));
  const host_gpu::Slot other = host_gpu::exchange(mine, lane, place);
  std::memcpy(&value, &other, sizeof(T));
  return value;
}

template <typename T>
T __shfl_down_sync(unsigned, T value, int delta, std::source_location place = std::source_location::current()) {
  const int lane = static_cast<int>(host_gpu::position.thread.x % 32);
  return host_shuffle(value, lane + delta < 32 ? lane + delta : lane, place);
}

template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask, std::source_location place = std::source_location::current()) {
  return host_shuffle(value, static_cast<int>(host_gpu::position.thread.x % 32) ^ mask, place);
}

inline float __int_as_float(int bits) {
  return __builtin_bit_cast(float, bits);
}
inline int __float_as_int(float value) {
  return __builtin_bit_cast(int, value);
}

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments... arguments) {
  const auto body = [&] { kernel(arguments...); };
  const host_gpu::Index grid{config->gridDim.x, config->gridDim.y, config->gridDim.z};
  return host_gpu::run_grid(
             grid, config->blockDim.x, [](const void* call) { (*static_cast<decltype(body)*>(call))(); }, &body)
             ? cudaSuccess
             : cudaErrorInvalidValue;
}
