// GroupNorm backward: partial sums of dz (the gradient before SiLU) and of dz * (x - center) per channel, the gradients
// of the parameters and the columns of dx from them, then dx = scale * dz + by_x * (x - center) + constant.
#include "model/kernels/cuda/block_sum.cuh"
#include "model/kernels/cuda/group_norm_walk.cuh"
#include "model/kernels/cuda/launchers.cuh"

namespace sdtune::model {

namespace {

// The forward pass's columns of one thread's channels.
template <int kPack, bool kChannelsLast>
struct Affine {
  static constexpr int kChannels = Walk<kPack, kChannelsLast>::kChannels;

  __device__ Affine(const Walk<kPack, kChannelsLast>& walk, const float* columns, const GroupNormCut& cut)
      : silu(cut.silu) {
    const std::int64_t all = std::int64_t{cut.batch} * cut.channels;
    walk.load_columns(columns + kCenter * all, cut, center);
    walk.load_columns(columns + kScale * all, cut, scale);
    walk.load_columns(columns + kShift * all, cut, shift);
  }

  // x becomes x - center, and the gradient that before the activation.
  __device__ void apply(float (&x)[kPack], float (&gradient)[kPack]) const {
    for (int v = 0; v < kPack; ++v) {
      const int c = v % kChannels;
      x[v] -= center[c];
      if (!silu) continue;
      const float z = x[v] * scale[c] + shift[c];
      const float s = 1.0f / (1.0f + expf(-z));
      gradient[v] *= s * (1.0f + z * (1.0f - s));
    }
  }

  float center[kChannels], scale[kChannels], shift[kChannels];
  bool silu;
};

// Sums of dz and of dz * (x - center) over what a walk meets, a pack's channels apart.
template <typename T, int kPack, bool kChannelsLast>
__device__ void walk_sums(const Walk<kPack, kChannelsLast>& walk, const T* grad_y, const T* x, const float* columns,
                          const GroupNormCut& cut, float (&dz)[Walk<kPack, kChannelsLast>::kChannels],
                          float (&dz_x)[Walk<kPack, kChannelsLast>::kChannels]) {
  const Affine<kPack, kChannelsLast> affine(walk, columns, cut);
  for (int c = 0; c < walk.kChannels; ++c) dz[c] = dz_x[c] = 0.0f;
  const std::int64_t image = image_start(cut, walk.image);
  for (int i = walk.begin; i < walk.end; i += walk.step) {
    const std::int64_t at = image + walk.base + i * walk.stride;
    float gradient[kPack], numbers[kPack];
    load_floats(grad_y + at, gradient);
    load_floats(x + at, numbers);
    affine.apply(numbers, gradient);
    for (int v = 0; v < kPack; ++v) {
      dz[v % walk.kChannels] += gradient[v];
      dz_x[v % walk.kChannels] += gradient[v] * numbers[v];
    }
  }
}

// Partial sums [2, B, slabs, C]: of dz, then of dz * (x - center).
template <typename T, int kPack>
__global__ void sums_by_pixels(const T* grad_y, const T* x, const float* columns, float* partials, GroupNormCut cut) {
  __shared__ float sums[kPack * kThreads], products[kPack * kThreads];
  const Walk<kPack, true> walk(cut);
  float dz[kPack], dz_x[kPack];
  walk_sums(walk, grad_y, x, columns, cut, dz, dz_x);
  for (int v = 0; v < kPack; ++v) {
    sums[v * kThreads + threadIdx.x] = dz[v];
    products[v * kThreads + threadIdx.x] = dz_x[v];
  }
  __syncthreads();
  float* products_out = partials + std::int64_t{cut.batch} * cut.slabs * cut.channels;
  for (int k = threadIdx.x; k < kPack * cut.tile; k += kThreads) {
    const int v = k / cut.tile, column = k % cut.tile;
    const int pack = blockIdx.x * cut.tile + column;
    if (pack >= cut.packs) continue;
    float sum = 0, product = 0;
    for (int row = 0; row < cut.rows; ++row) {
      sum += sums[v * kThreads + row * cut.tile + column];
      product += products[v * kThreads + row * cut.tile + column];
    }
    partials[walk.partial + pack * kPack + v] = sum;
    products_out[walk.partial + pack * kPack + v] = product;
  }
}

template <typename T, int kPack>
__global__ void sums_by_planes(const T* grad_y, const T* x, const float* columns, float* partials, GroupNormCut cut) {
  const Walk<kPack, false> walk(cut);
  if (!walk.is_active) return;  // a whole warp
  float dz[1], dz_x[1];
  walk_sums(walk, grad_y, x, columns, cut, dz, dz_x);
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    dz[0] += __shfl_down_sync(0xFFFFFFFFu, dz[0], offset);
    dz_x[0] += __shfl_down_sync(0xFFFFFFFFu, dz_x[0], offset);
  }
  if (threadIdx.x % kWarp != 0) return;
  partials[walk.partial + walk.channel] = dz[0];
  partials[std::int64_t{cut.batch} * cut.slabs * cut.channels + walk.partial + walk.channel] = dz_x[0];
}

struct Gradients {
  void* weight;
  void* bias;
  void* offset;
};

// A block a group: over its slabs, channels and images, in double since the numbers are few.
template <typename T>
__global__ void gradient_columns_kernel(const float* partials, const float* columns, const float* rstds,
                                        float* by_x_out, float* constant_out, Gradients out, GroupNormCut cut) {
  __shared__ double sums[kThreads], products[kThreads];
  const int row = threadIdx.x / cut.width, k = threadIdx.x % cut.width, rows = kThreads / cut.width;
  const int channel = blockIdx.x * cut.width + k;
  const std::int64_t all = std::int64_t{cut.batch} * cut.channels;
  const double count = static_cast<double>(cut.spatial) * cut.width;
  double weight_gradient = 0, bias_gradient = 0;
  for (int image = 0; image < cut.batch; ++image) {
    const float* of_image = partials + std::int64_t{image} * cut.slabs * cut.channels + channel;
    double sum = 0, product = 0;
    for (int slab = row; row < rows && slab < cut.slabs; slab += rows) {
      sum += of_image[std::int64_t{slab} * cut.channels];
      product += of_image[all * cut.slabs + std::int64_t{slab} * cut.channels];
    }
    sums[threadIdx.x] = sum;
    products[threadIdx.x] = product;
    __syncthreads();
    const std::int64_t at = std::int64_t{image} * cut.channels + channel;
    const double scale = columns[kScale * all + at], residual = columns[kResidual * all + at];
    const double rstd = rstds[image * cut.groups + blockIdx.x];
    double dz = 0, dz_norm = 0;  // sums of dz, and of dz * normalised x, over the channel's pixels
    for (int r = 0; r < rows; ++r) {
      dz += sums[r * cut.width + k];
      dz_norm += products[r * cut.width + k];
    }
    dz_norm = (dz_norm + residual * dz) * rstd;
    const double mean_dz = block_sum(row == 0 ? scale * dz : 0.0) / count;  // barriers inside: sums may be overwritten
    const double mean_dz_norm = block_sum(row == 0 ? scale * dz_norm : 0.0) / count;
    const double by_x = -rstd * mean_dz_norm;
    weight_gradient += dz_norm;
    bias_gradient += dz;
    if (row != 0) continue;
    by_x_out[at] = static_cast<float>(by_x);
    constant_out[at] = static_cast<float>(by_x * residual - mean_dz);
    if (out.offset == nullptr) continue;
    const double of_mean = by_x * columns[kDeviation * all + at] - mean_dz;  // a pixel's share
    static_cast<T*>(out.offset)[at] = from_float<T>(static_cast<float>(scale * dz + cut.spatial * of_mean));
  }
  if (row != 0 || out.weight == nullptr) return;
  static_cast<T*>(out.weight)[channel] = from_float<T>(static_cast<float>(weight_gradient));
  static_cast<T*>(out.bias)[channel] = from_float<T>(static_cast<float>(bias_gradient));
}

template <typename T, int kPack, bool kChannelsLast>
__global__ void input_gradient_kernel(const T* grad_y, const T* x, T* grad_x, const float* columns, const float* by_xs,
                                      const float* constants, GroupNormCut cut) {
  const Walk<kPack, kChannelsLast> walk(cut);
  const Affine<kPack, kChannelsLast> affine(walk, columns, cut);
  float by_x[walk.kChannels], constant[walk.kChannels];
  walk.load_columns(by_xs, cut, by_x);
  walk.load_columns(constants, cut, constant);
  const std::int64_t image = image_start(cut, walk.image);
  for (int i = walk.begin; i < walk.end; i += walk.step) {
    const std::int64_t at = image + walk.base + i * walk.stride;
    float gradient[kPack], numbers[kPack];
    load_floats(grad_y + at, gradient);
    load_floats(x + at, numbers);
    affine.apply(numbers, gradient);
    for (int v = 0; v < kPack; ++v) {
      const int c = v % walk.kChannels;
      gradient[v] = affine.scale[c] * gradient[v] + (by_x[c] * numbers[v] + constant[c]);
    }
    store_floats(gradient, grad_x + at);
  }
}

template <typename T, int kPack, bool kChannelsLast>
void backward(const CudaGroupNormBackward& t, const CudaGroupNorm& shape, const CudaStream& stream) {
  const GroupNormCut cut = group_norm_cut(shape, kPack);
  const dim3 grid = group_norm_grid(cut);
  const auto* dy = static_cast<const T*>(t.grad_y);
  const auto* x = static_cast<const T*>(t.x);
  const std::int64_t all = shape.batch * shape.channels;
  float* by_x = t.workspace + 2 * all * cut.slabs;
  float* constant = by_x + all;
  if constexpr (kChannelsLast) {
    launch("group_norm sums", sums_by_pixels<T, kPack>, grid, stream, dy, x, t.columns, t.workspace, cut);
  } else {
    launch("group_norm sums", sums_by_planes<T, kPack>, grid, stream, dy, x, t.columns, t.workspace, cut);
  }
  launch("group_norm gradient columns", gradient_columns_kernel<T>, dim3(static_cast<unsigned>(cut.groups)), stream,
         t.workspace, t.columns, t.rstd, by_x, constant, Gradients{t.grad_weight, t.grad_bias, t.grad_offset}, cut);
  launch("group_norm input gradient", input_gradient_kernel<T, kPack, kChannelsLast>, grid, stream, dy, x,
         static_cast<T*>(t.grad_x), t.columns, by_x, constant, cut);
}

}  // namespace

void launch_group_norm_backward(const CudaGroupNormBackward& tensors, const CudaGroupNorm& shape, CudaType type,
                                const CudaStream& stream) {
  with_type(type, [&](auto element) {
    using T = decltype(element);
    const bool is_wide = packs_fit<T>(shape) && is_aligned(tensors.grad_y, 16) && is_aligned(tensors.x, 16) &&
                         is_aligned(tensors.grad_x, 16);
    with_pack<T>(is_wide, [&](auto pack) {
      constexpr int kPack = decltype(pack)::value;
      shape.channels_last ? backward<T, kPack, true>(tensors, shape, stream)
                          : backward<T, kPack, false>(tensors, shape, stream);
    });
  });
}

}  // namespace sdtune::model
