// Element types of kernels: conversions to and from float32, and several numbers as one access of memory.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "model/core/cuda_table.h"

namespace sdtune::model {

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

// Neighbouring numbers that one instruction reads or writes.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T value[kCount];
};

// How many numbers are 16 bytes, the widest access.
template <typename T>
inline constexpr int kWide = 16 / static_cast<int>(sizeof(T));

template <int kCount, typename T>
__device__ void load_floats(const T* from, float (&to)[kCount]) {
  const auto pack = *reinterpret_cast<const Pack<T, kCount>*>(from);
  for (int i = 0; i < kCount; ++i) to[i] = to_float(pack.value[i]);
}

template <int kCount, typename T>
__device__ void store_floats(const float (&from)[kCount], T* to) {
  Pack<T, kCount> pack;
  for (int i = 0; i < kCount; ++i) pack.value[i] = from_float<T>(from[i]);
  *reinterpret_cast<Pack<T, kCount>*>(to) = pack;
}

// Whether a pack of `bytes` may be read or written there.
__host__ __device__ inline bool is_aligned(const void* pointer, int bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(bytes) == 0;
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

// Calls function(std::integral_constant) with kWide numbers a thread, or with one.
template <typename T, typename Function>
void with_pack(bool is_wide, const Function& function) {
  if (is_wide) return function(std::integral_constant<int, kWide<T>>{});
  return function(std::integral_constant<int, 1>{});
}

}  // namespace sdtune::model
