// GEGLU (Shazeer, "GLU variants improve transformer", 2020) with the exact GELU: y = x1 * gelu(x2), both ways.
#include "model/kernels/launch.cuh"
#include "model/kernels/launchers.cuh"

namespace sdtune::model {

namespace {

constexpr float kInverseSqrt2 = 0.70710678118f;
constexpr float kInverseSqrt2Pi = 0.39894228040f;

__device__ float normal_cdf(float x) {
  return 0.5f * (1.0f + erff(x * kInverseSqrt2));
}

template <typename T>
__global__ void geglu_forward_kernel(const T* x, T* y, std::int64_t count, std::int64_t width) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t value = i / width * 2 * width + i % width;
    const float gate = to_float(x[value + width]);
    y[i] = from_float<T>(to_float(x[value]) * gate * normal_cdf(gate));
  }
}

template <typename T>
__global__ void geglu_backward_kernel(const T* grad_y, const T* x, T* grad_x, std::int64_t count, std::int64_t width) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t value = i / width * 2 * width + i % width;
    const float gate = to_float(x[value + width]);
    const float cdf = normal_cdf(gate);
    const float slope = cdf + gate * kInverseSqrt2Pi * expf(-0.5f * gate * gate);
    const float grad = to_float(grad_y[i]);
    grad_x[value] = from_float<T>(grad * gate * cdf);
    grad_x[value + width] = from_float<T>(grad * to_float(x[value]) * slope);
  }
}

}  // namespace

void launch_geglu_forward(const void* x, void* y, std::int64_t rows, std::int64_t width, CudaType type, void* stream) {
  with_type(type, [&](auto element) {
    using T = decltype(element);
    geglu_forward_kernel<T><<<grid_for(rows * width, 4), kThreads, 0, stream_of(stream)>>>(
        static_cast<const T*>(x), static_cast<T*>(y), rows * width, width);
  });
  check_launch("geglu_forward");
}

void launch_geglu_backward(const void* grad_y, const void* x, void* grad_x, std::int64_t rows, std::int64_t width,
                           CudaType type, void* stream) {
  with_type(type, [&](auto element) {
    using T = decltype(element);
    geglu_backward_kernel<T><<<grid_for(rows * width, 4), kThreads, 0, stream_of(stream)>>>(
        static_cast<const T*>(grad_y), static_cast<const T*>(x), static_cast<T*>(grad_x), rows * width, width);
  });
  check_launch("geglu_backward");
}

}  // namespace sdtune::model
