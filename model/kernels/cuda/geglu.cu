// GEGLU (Shazeer, "GLU variants improve transformer", 2020) with the exact GELU: y = x1 * gelu(x2), both ways.
#include "model/kernels/cuda/launch.cuh"
#include "model/kernels/cuda/launchers.cuh"
#include "model/kernels/cuda/numbers.cuh"

namespace sdtune::model {

namespace {

constexpr float kInverseSqrt2 = 0.70710678118f;
constexpr float kInverseSqrt2Pi = 0.39894228040f;

__device__ float normal_cdf(float x) {
  return 0.5f * (1.0f + erff(x * kInverseSqrt2));
}

// Where pack i of y has its value in x; the gate stands one width behind. `packs` is the number of a row of y.
template <int kPack>
__device__ unsigned value_place(unsigned i, unsigned packs) {
  return (i / packs * 2 * packs + i % packs) * kPack;
}

template <int kPack, typename T>
__global__ void geglu_forward_kernel(const T* x, T* y, unsigned count, unsigned packs) {
  for (unsigned i = blockIdx.x * kThreads + threadIdx.x; i < count; i += gridDim.x * kThreads) {
    const unsigned at = value_place<kPack>(i, packs);
    float value[kPack], gate[kPack];
    load_floats(x + at, value);
    load_floats(x + at + packs * kPack, gate);
    for (int j = 0; j < kPack; ++j) value[j] *= gate[j] * normal_cdf(gate[j]);
    store_floats(value, y + i * kPack);
  }
}

template <int kPack, typename T>
__global__ void geglu_backward_kernel(const T* grad_y, const T* x, T* grad_x, unsigned count, unsigned packs) {
  for (unsigned i = blockIdx.x * kThreads + threadIdx.x; i < count; i += gridDim.x * kThreads) {
    const unsigned at = value_place<kPack>(i, packs);
    float grad[kPack], value[kPack], gate[kPack];
    load_floats(grad_y + i * kPack, grad);
    load_floats(x + at, value);
    load_floats(x + at + packs * kPack, gate);
    for (int j = 0; j < kPack; ++j) {
      const float cdf = normal_cdf(gate[j]);
      const float slope = cdf + gate[j] * kInverseSqrt2Pi * expf(-0.5f * gate[j] * gate[j]);
      const float of_gate = grad[j] * value[j] * slope;
      value[j] = grad[j] * gate[j] * cdf;
      gate[j] = of_gate;
    }
    store_floats(value, grad_x + at);
    store_floats(gate, grad_x + at + packs * kPack);
  }
}

void check_size(std::int64_t rows, std::int64_t width) {
  if (rows * width * 2 >= std::int64_t{1} << 31) throw std::invalid_argument("geglu: 2^31 numbers or more");
}

}  // namespace

void launch_geglu_forward(const void* x, void* y, std::int64_t rows, std::int64_t width, CudaType type,
                          const CudaStream& stream) {
  check_size(rows, width);
  if (rows * width == 0) return;
  with_type(type, [&](auto element) {
    using T = decltype(element);
    const bool is_wide = width % kWide<T> == 0 && is_aligned(x, 16) && is_aligned(y, 16);
    with_pack<T>(is_wide, [&](auto pack) {
      constexpr int kPack = decltype(pack)::value;
      launch("geglu_forward", geglu_forward_kernel<kPack, T>, dim3(grid_for(rows * width / kPack)), stream,
             static_cast<const T*>(x), static_cast<T*>(y), rows * width / kPack, width / kPack);
    });
  });
}

void launch_geglu_backward(const void* grad_y, const void* x, void* grad_x, std::int64_t rows, std::int64_t width,
                           CudaType type, const CudaStream& stream) {
  check_size(rows, width);
  if (rows * width == 0) return;
  with_type(type, [&](auto element) {
    using T = decltype(element);
    const bool is_wide = width % kWide<T> == 0 && is_aligned(grad_y, 16) && is_aligned(x, 16) && is_aligned(grad_x, 16);
    with_pack<T>(is_wide, [&](auto pack) {
      constexpr int kPack = decltype(pack)::value;
      launch("geglu_backward", geglu_backward_kernel<kPack, T>, dim3(grid_for(rows * width / kPack)), stream,
             static_cast<const T*>(grad_y), static_cast<const T*>(x), static_cast<T*>(grad_x), rows * width / kPack,
             width / kPack);
    });
  });
}

}  // namespace sdtune::model
