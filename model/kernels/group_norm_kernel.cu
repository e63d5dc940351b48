// GroupNorm (Wu and He, 2018), alone or with SiLU after it, in NCHW or NHWC memory, forward and backward. A block owns
// one group of one image, so statistics need no second launch; sums are in float32.
#include "model/kernels/launch.cuh"
#include "model/kernels/launchers.cuh"

namespace sdtune::model {

namespace {

// Where the elements of group (b, g) lie: element i of it is channel i / spatial (NCHW) or i % width (NHWC).
struct Place {
  std::int64_t index;    // in x
  std::int64_t channel;  // in weight
};

__device__ Place place_of(const CudaGroupNorm& shape, std::int64_t b, std::int64_t g, std::int64_t i) {
  const std::int64_t width = shape.channels / shape.groups;
  if (shape.channels_last) {
    const std::int64_t channel = g * width + i % width;
    return {(b * shape.spatial + i / width) * shape.channels + channel, channel};
  }
  return {(b * shape.channels + g * width) * shape.spatial + i, g * width + i / shape.spatial};
}

__device__ float sigmoid(float z) {
  return 1.0f / (1.0f + expf(-z));
}

template <typename T>
__global__ void group_norm_forward_kernel(const T* x, const T* weight, const T* bias, T* y, float* mean_out,
                                          float* rstd_out, CudaGroupNorm shape) {
  const std::int64_t b = blockIdx.x / shape.groups;
  const std::int64_t g = blockIdx.x % shape.groups;
  const std::int64_t count = shape.channels / shape.groups * shape.spatial;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) sum += to_float(x[place_of(shape, b, g, i).index]);
  const float mean = block_sum(sum) / static_cast<float>(count);
  float squares = 0;  // a second pass around the mean: no cancellation
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    const float centred = to_float(x[place_of(shape, b, g, i).index]) - mean;
    squares += centred * centred;
  }
  const float rstd = rsqrtf(block_sum(squares) / static_cast<float>(count) + shape.epsilon);
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    const Place at = place_of(shape, b, g, i);
    const float z = (to_float(x[at.index]) - mean) * rstd * to_float(weight[at.channel]) + to_float(bias[at.channel]);
    y[at.index] = from_float<T>(shape.silu ? z * sigmoid(z) : z);
  }
  if (threadIdx.x == 0) {
    mean_out[blockIdx.x] = mean;
    rstd_out[blockIdx.x] = rstd;
  }
}

// What both passes of backward need of one element.
struct Element {
  float normalised;  // (x - mean) * rstd
  float grad;        // of the affine output, through SiLU
};

template <typename T>
__device__ Element element_of(const T* grad_y, const T* x, const T* weight, const T* bias, const CudaGroupNorm& shape,
                              const Place& at, float mean, float rstd) {
  const float normalised = (to_float(x[at.index]) - mean) * rstd;
  float grad = to_float(grad_y[at.index]);
  if (shape.silu) {
    const float z = normalised * to_float(weight[at.channel]) + to_float(bias[at.channel]);
    const float s = sigmoid(z);
    grad *= s * (1.0f + z * (1.0f - s));
  }
  return {normalised, grad};
}

template <typename T>
__global__ void group_norm_grad_x_kernel(const T* grad_y, const T* x, const T* weight, const T* bias,
                                         const float* means, const float* rstds, T* grad_x, CudaGroupNorm shape) {
  const std::int64_t b = blockIdx.x / shape.groups;
  const std::int64_t g = blockIdx.x % shape.groups;
  const std::int64_t count = shape.channels / shape.groups * shape.spatial;
  const float mean = means[blockIdx.x];
  const float rstd = rstds[blockIdx.x];
  float sum = 0;
  float product = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    const Place at = place_of(shape, b, g, i);
    const Element e = element_of(grad_y, x, weight, bias, shape, at, mean, rstd);
    const float scaled = e.grad * to_float(weight[at.channel]);
    sum += scaled;
    product += scaled * e.normalised;
  }
  const float mean_grad = block_sum(sum) / static_cast<float>(count);
  const float mean_product = block_sum(product) / static_cast<float>(count);
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    const Place at = place_of(shape, b, g, i);
    const Element e = element_of(grad_y, x, weight, bias, shape, at, mean, rstd);
    const float scaled = e.grad * to_float(weight[at.channel]);
    grad_x[at.index] = from_float<T>(rstd * (scaled - mean_grad - e.normalised * mean_product));
  }
}

// A block owns one channel over all images, so no atomics and always the same order of additions.
template <typename T>
__global__ void group_norm_grad_affine_kernel(const T* grad_y, const T* x, const T* weight, const T* bias,
                                              const float* means, const float* rstds, float* grad_weight,
                                              float* grad_bias, CudaGroupNorm shape) {
  const std::int64_t channel = blockIdx.x;
  const std::int64_t g = channel / (shape.channels / shape.groups);
  float sum = 0;
  float product = 0;
  for (std::int64_t i = threadIdx.x; i < shape.batch * shape.spatial; i += kThreads) {
    const std::int64_t b = i / shape.spatial;
    const std::int64_t s = i % shape.spatial;
    const Place at{shape.channels_last ? (b * shape.spatial + s) * shape.channels + channel
                                       : (b * shape.channels + channel) * shape.spatial + s,
                   channel};
    const std::int64_t group = b * shape.groups + g;
    const Element e = element_of(grad_y, x, weight, bias, shape, at, means[group], rstds[group]);
    sum += e.grad;
    product += e.grad * e.normalised;
  }
  sum = block_sum(sum);
  product = block_sum(product);
  if (threadIdx.x == 0) {
    grad_bias[channel] += sum;
    grad_weight[channel] += product;
  }
}

}  // namespace

void launch_group_norm_forward(const void* x, const void* weight, const void* bias, void* y, float* mean, float* rstd,
                               const CudaGroupNorm& shape, CudaType type, void* stream) {
  with_type(type, [&](auto element) {
    using T = decltype(element);
    group_norm_forward_kernel<T><<<static_cast<unsigned>(shape.batch * shape.groups), kThreads, 0, stream_of(stream)>>>(
        static_cast<const T*>(x), static_cast<const T*>(weight), static_cast<const T*>(bias), static_cast<T*>(y), mean,
        rstd, shape);
  });
  check_launch("group_norm_forward");
}

void launch_group_norm_backward(const void* grad_y, const void* x, const void* weight, const void* bias,
                                const float* mean, const float* rstd, void* grad_x, float* grad_weight,
                                float* grad_bias, const CudaGroupNorm& shape, CudaType type, void* stream) {
  with_type(type, [&](auto element) {
    using T = decltype(element);
    const auto* dy = static_cast<const T*>(grad_y);
    const auto* in = static_cast<const T*>(x);
    const auto* w = static_cast<const T*>(weight);
    const auto* b = static_cast<const T*>(bias);
    group_norm_grad_x_kernel<T><<<static_cast<unsigned>(shape.batch * shape.groups), kThreads, 0, stream_of(stream)>>>(
        dy, in, w, b, mean, rstd, static_cast<T*>(grad_x), shape);
    if (grad_weight != nullptr) {
      group_norm_grad_affine_kernel<T><<<static_cast<unsigned>(shape.channels), kThreads, 0, stream_of(stream)>>>(
          dy, in, w, b, mean, rstd, grad_weight, grad_bias, shape);
    }
  });
  check_launch("group_norm_backward");
}

}  // namespace sdtune::model
