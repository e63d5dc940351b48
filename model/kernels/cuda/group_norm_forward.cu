// GroupNorm (Wu and He, 2018) of x + offset, alone or with SiLU after it, forward: partial moments, columns, y.
//
// Moments are taken in one pass by Welford's update per thread and channel, and merged by Chan's formula (Chan, Golub
// and LeVeque, 1979): sums of x and of x^2 would lose the variance where the mean is large against it. What is taken in
// is x less the channel's first pixel, so that means keep their digits there too; where that pixel is an outlier, the
// update still loses nothing but those. It costs one division a pack.
#include "model/kernels/cuda/block_sum.cuh"
#include "model/kernels/cuda/group_norm_walk.cuh"
#include "model/kernels/cuda/launchers.cuh"

namespace sdtune::model {

namespace {

// Of `count` numbers: their mean, and the sum of squares around it.
struct Moments {
  float count, mean, squares;

  __device__ void merge(const Moments& other) {
    if (other.count == 0) return;
    const float all = count + other.count;
    const float difference = other.mean - mean;
    mean += difference * (other.count / all);
    squares += other.squares + difference * difference * (count * other.count / all);
    count = all;
  }
};

// The moments of what a walk meets, a pack's numbers apart.
template <typename T, int kPack, bool kChannelsLast>
__device__ float walk_moments(const Walk<kPack, kChannelsLast>& walk, const T* image, const GroupNormCut& cut,
                              float (&mean)[kPack], float (&squares)[kPack]) {
  float pivot[Walk<kPack, kChannelsLast>::kChannels];
  for (int c = 0; c < walk.kChannels; ++c) pivot[c] = to_float(image[first_pixel(cut, walk.channel + c)]);
  for (int v = 0; v < kPack; ++v) mean[v] = squares[v] = 0.0f;
  float count = 0;
  for (int i = walk.begin; i < walk.end; i += walk.step) {
    float x[kPack];
    load_floats(image + walk.base + i * walk.stride, x);
    count += 1.0f;
    const float weight = 1.0f / count;
    for (int v = 0; v < kPack; ++v) {
      const float shifted = x[v] - pivot[v % walk.kChannels];
      const float difference = shifted - mean[v];
      mean[v] += difference * weight;
      squares[v] += difference * (shifted - mean[v]);
    }
  }
  return count;
}

// Partial moments [2, B, slabs, C]: means less the channel's first pixel, then squares.
template <typename T, int kPack>
__global__ void moments_by_pixels(const T* x, float* partials, GroupNormCut cut) {
  __shared__ float counts[kThreads], means[kPack * kThreads], squares[kPack * kThreads];
  const Walk<kPack, true> walk(cut);
  float mean[kPack], square[kPack];
  counts[threadIdx.x] = walk_moments(walk, x + image_start(cut, walk.image), cut, mean, square);
  for (int v = 0; v < kPack; ++v) {
    means[v * kThreads + threadIdx.x] = mean[v];
    squares[v * kThreads + threadIdx.x] = square[v];
  }
  __syncthreads();
  float* squares_out = partials + std::int64_t{cut.batch} * cut.slabs * cut.channels;
  for (int k = threadIdx.x; k < kPack * cut.tile; k += kThreads) {
    const int v = k / cut.tile, column = k % cut.tile;
    const int pack = blockIdx.x * cut.tile + column;
    if (pack >= cut.packs) continue;
    Moments all{0, 0, 0};
    for (int row = 0; row < cut.rows; ++row) {
      const int thread = row * cut.tile + column;
      all.merge({counts[thread], means[v * kThreads + thread], squares[v * kThreads + thread]});
    }
    partials[walk.partial + pack * kPack + v] = all.mean;
    squares_out[walk.partial + pack * kPack + v] = all.squares;
  }
}

template <typename T, int kPack>
__global__ void moments_by_planes(const T* x, float* partials, GroupNormCut cut) {
  const Walk<kPack, false> walk(cut);
  if (!walk.is_active) return;  // a whole warp
  float mean[kPack], square[kPack];
  const float count = walk_moments(walk, x + image_start(cut, walk.image), cut, mean, square);
  Moments all{0, 0, 0};
  for (int v = 0; v < kPack; ++v) all.merge({count, mean[v], square[v]});
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const Moments other{__shfl_down_sync(0xFFFFFFFFu, all.count, offset),
                        __shfl_down_sync(0xFFFFFFFFu, all.mean, offset),
                        __shfl_down_sync(0xFFFFFFFFu, all.squares, offset)};
    all.merge(other);
  }
  if (threadIdx.x % kWarp != 0) return;
  partials[walk.partial + walk.channel] = all.mean;
  partials[std::int64_t{cut.batch} * cut.slabs * cut.channels + walk.partial + walk.channel] = all.squares;
}

// A block for each group of each image, in double since the numbers are few: the group's moments from those of its
// slabs and channels, and the columns.
template <typename T>
__global__ void columns_kernel(const T* x, const float* partials, const T* weight, const T* bias, const T* offsets,
                               float* columns, float* rstds, GroupNormCut cut, double epsilon) {
  __shared__ double of_row[kThreads];
  const int image = blockIdx.y, row = threadIdx.x / cut.width, k = threadIdx.x % cut.width;
  const int rows = kThreads / cut.width;
  const int channel = blockIdx.x * cut.width + k;
  const std::int64_t at = std::int64_t{image} * cut.channels + channel;
  const double offset = offsets == nullptr ? 0.0 : static_cast<double>(to_float(offsets[at]));
  const double shift = offset + to_float(x[image_start(cut, image) + first_pixel(cut, channel)]);
  const float* means = partials + std::int64_t{image} * cut.slabs * cut.channels + channel;
  const float* squares = means + std::int64_t{cut.batch} * cut.slabs * cut.channels;
  double sum = 0;
  for (int slab = row; row < rows && slab < cut.slabs; slab += rows) {
    sum += static_cast<double>(slab_pixels(cut, slab)) * means[std::int64_t{slab} * cut.channels];
  }
  of_row[threadIdx.x] = sum;
  __syncthreads();
  double channel_mean = 0;  // of x + offset
  for (int r = 0; r < rows; ++r) channel_mean += of_row[r * cut.width + k];
  channel_mean = channel_mean / cut.spatial + shift;
  const double mean = block_sum(row == 0 ? channel_mean : 0.0) / cut.width;
  double around = 0;
  for (int slab = row; row < rows && slab < cut.slabs; slab += rows) {
    const double difference = means[std::int64_t{slab} * cut.channels] + shift - mean;
    around += squares[std::int64_t{slab} * cut.channels] + slab_pixels(cut, slab) * difference * difference;
  }
  const double variance = block_sum(around) / (static_cast<double>(cut.spatial) * cut.width);
  const double rstd = 1.0 / sqrt(variance + epsilon);
  if (threadIdx.x == 0) rstds[image * cut.groups + blockIdx.x] = static_cast<float>(rstd);
  if (row != 0) return;
  const double exact_center = mean - offset;
  const auto center = static_cast<float>(exact_center);
  const double residual = center - exact_center;
  const double scale = rstd * to_float(weight[channel]);
  const std::int64_t all = std::int64_t{cut.batch} * cut.channels;
  columns[kCenter * all + at] = center;
  columns[kScale * all + at] = static_cast<float>(scale);
  columns[kShift * all + at] = static_cast<float>(to_float(bias[channel]) + residual * scale);
  columns[kDeviation * all + at] = static_cast<float>(channel_mean - mean);
  columns[kResidual * all + at] = static_cast<float>(residual);
}

template <typename T, int kPack, bool kChannelsLast>
__global__ void output_kernel(const T* x, T* y, const float* columns, GroupNormCut cut) {
  const Walk<kPack, kChannelsLast> walk(cut);
  const std::int64_t all = std::int64_t{cut.batch} * cut.channels;
  float center[walk.kChannels], scale[walk.kChannels], shift[walk.kChannels];
  walk.load_columns(columns + kCenter * all, cut, center);
  walk.load_columns(columns + kScale * all, cut, scale);
  walk.load_columns(columns + kShift * all, cut, shift);
  const std::int64_t image = image_start(cut, walk.image);
  for (int i = walk.begin; i < walk.end; i += walk.step) {
    const std::int64_t at = image + walk.base + i * walk.stride;
    float numbers[kPack];
    load_floats(x + at, numbers);
    for (int v = 0; v < kPack; ++v) {
      const int c = v % walk.kChannels;
      const float z = (numbers[v] - center[c]) * scale[c] + shift[c];
      numbers[v] = cut.silu ? z / (1.0f + expf(-z)) : z;
    }
    store_floats(numbers, y + at);
  }
}

template <typename T, int kPack, bool kChannelsLast>
void forward(const CudaGroupNormForward& t, const CudaGroupNorm& shape, const CudaStream& stream) {
  const GroupNormCut cut = group_norm_cut(shape, kPack);
  const dim3 grid = group_norm_grid(cut);
  const auto* x = static_cast<const T*>(t.x);
  if constexpr (kChannelsLast) {
    launch("group_norm moments", moments_by_pixels<T, kPack>, grid, stream, x, t.workspace, cut);
  } else {
    launch("group_norm moments", moments_by_planes<T, kPack>, grid, stream, x, t.workspace, cut);
  }
  launch("group_norm columns", columns_kernel<T>,
         dim3(static_cast<unsigned>(cut.groups), static_cast<unsigned>(cut.batch)), stream, x, t.workspace,
         static_cast<const T*>(t.weight), static_cast<const T*>(t.bias), static_cast<const T*>(t.offset), t.columns,
         t.rstd, cut, shape.epsilon);
  launch("group_norm output", output_kernel<T, kPack, kChannelsLast>, grid, stream, x, static_cast<T*>(t.y), t.columns,
         cut);
}

}  // namespace

void launch_group_norm_forward(const CudaGroupNormForward& tensors, const CudaGroupNorm& shape, CudaType type,
                               const CudaStream& stream) {
  with_type(type, [&](auto element) {
    using T = decltype(element);
    const bool is_wide = packs_fit<T>(shape) && is_aligned(tensors.x, 16) && is_aligned(tensors.y, 16);
    with_pack<T>(is_wide, [&](auto pack) {
      constexpr int kPack = decltype(pack)::value;
      shape.channels_last ? forward<T, kPack, true>(tensors, shape, stream)
                          : forward<T, kPack, false>(tensors, shape, stream);
    });
  });
}

std::int64_t group_norm_workspace(const CudaGroupNorm& shape, CudaType type) {
  std::int64_t largest = 0;
  with_type(type, [&](auto element) {
    // Which cut is taken depends on the pointers' alignment as well.
    for (const int pack : {1, kWide<decltype(element)>}) {
      const GroupNormCut cut = group_norm_cut(shape, pack);
      const std::int64_t rows = 2 * std::int64_t{cut.batch} * (cut.slabs + 1);  // partial sums, gradient's columns
      largest = std::max(largest, rows * cut.channels);
    }
  });
  return largest;
}

}  // namespace sdtune::model
