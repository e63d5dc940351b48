// Grid sizes, launch checks, conversions and block sums that the kernels share.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "model/core/cuda_table.h"

namespace sdtune::model {

inline constexpr int kThreads = 256;

// Blocks for `count` items, few enough that a grid-stride loop stays worthwhile.
inline unsigned grid_for(std::int64_t count, int items_per_thread = 1) {
  const std::int64_t per_block = std::int64_t{kThreads} * items_per_thread;
  return static_cast<unsigned>(std::clamp<std::int64_t>((count + per_block - 1) / per_block, 1, 65536));
}

inline void check_launch(const char* kernel) {
  if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) {
    throw std::runtime_error(std::string(kernel) + ": " + cudaGetErrorString(status));
  }
}

inline cudaStream_t stream_of(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

__device__ inline float to_float(float value) {
  return value;
}
__device__ inline float to_float(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
__device__ inline float to_float(__half value) {
  return __half2float(value);
}

template <typename T>
__device__ T from_float(float value);
template <>
__device__ inline float from_float<float>(float value) {
  return value;
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ inline __half from_float<__half>(float value) {
  return __float2half_rn(value);
}

// The sum over a block of kThreads threads, in every thread, always added in the same order.
template <typename T>
__device__ T block_sum(T value) {
  __shared__ T partial[kThreads / 32];
  __shared__ T total;
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xFFFFFFFFu, value, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    T sum = partial[0];
    for (int warp = 1; warp < kThreads / 32; ++warp) sum += partial[warp];
    total = sum;
  }
  __syncthreads();
  const T result = total;
  __syncthreads();  // partial and total may be written again
  return result;
}

// Calls function(T{}) with the element type.
template <typename Function>
void with_type(CudaType type, const Function& function) {
  switch (type) {
    case CudaType::kFloat32:
      return function(float{});
    case CudaType::kBFloat16:
      return function(__nv_bfloat16{});
    case CudaType::kFloat16:
      return function(__half{});
  }
  throw std::invalid_argument("unknown element type");
}

}  // namespace sdtune::model
