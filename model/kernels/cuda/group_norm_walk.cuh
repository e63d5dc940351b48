// How the blocks and threads of group norm share a map: it is cut into slabs of pixels, and each slab gives partial
// sums per channel, which a second launch adds up in a fixed order. Indices inside one image are of 32 bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "model/kernels/cuda/launch.cuh"
#include "model/kernels/cuda/numbers.cuh"

namespace sdtune::model {

// One shape's cut. A thread takes packs of kPack numbers.
// channels_last: a block is `rows` pixels times `tile` packs of channels, and walks through one slab; the grid is
// tiles x slabs x images. Else a warp walks through one slab of one channel's plane; the grid is as long as they are.
struct GroupNormCut {
  int batch, channels, spatial, groups, width;  // width: channels of a group
  int slabs, slab_size;                         // pixels of a slab but the last
  int packs, tile, rows;                        // channels_last: packs of a pixel, those of a block, pixels of a block
  bool silu, channels_last;
};

// The rows of the forward pass's columns, float32 [B, C] each. z = (x - center) * scale + shift. With the float32
// `center` near the exact one x - center loses nothing, however large the mean is; `shift` has what center lacks.
enum GroupNormColumn { kCenter, kScale, kShift, kDeviation, kResidual };
// kDeviation: the channel's mean of x + offset less the group's; kResidual: center less the exact one.

inline constexpr int kTargetBlocks = 512;  // enough for every GPU of today; partial sums stay below a tenth of x
inline constexpr int kLeastRounds = 4;     // packs that a thread takes at least
inline constexpr int kMostGroupWidth = kThreads;
inline constexpr int kMostTile = 128;
inline constexpr std::int64_t kMostNumbers = (std::int64_t{1} << 31) - (1 << 16);  // of an image, with room for a step

inline int divided_up(std::int64_t a, std::int64_t b) {
  return static_cast<int>((a + b - 1) / b);
}

inline void check_group_norm(const CudaGroupNorm& s) {
  if (s.batch < 1 || s.groups < 1 || s.spatial < 1 || s.channels < 1 || s.channels % s.groups != 0) {
    throw std::invalid_argument("group_norm: no such shape");
  }
  if (s.channels / s.groups > kMostGroupWidth)
    throw std::invalid_argument("group_norm: more than 256 channels a group");
  if (s.channels * s.spatial >= kMostNumbers || s.batch > 65535) {
    throw std::invalid_argument("group_norm: an image of nearly 2^31 numbers or more, or more than 65535 images");
  }
}

inline GroupNormCut group_norm_cut(const CudaGroupNorm& s, int pack) {
  check_group_norm(s);
  GroupNormCut cut{};
  cut.batch = static_cast<int>(s.batch), cut.channels = static_cast<int>(s.channels);
  cut.spatial = static_cast<int>(s.spatial), cut.groups = static_cast<int>(s.groups);
  cut.width = cut.channels / cut.groups;
  cut.silu = s.silu, cut.channels_last = s.channels_last;
  if (s.channels_last) {
    cut.packs = divided_up(s.channels, pack);
    cut.tile = cut.packs <= kMostTile ? cut.packs : kMostTile / 2;
    cut.rows = kThreads / cut.tile;
    const int most = divided_up(s.spatial, std::int64_t{cut.rows} * kLeastRounds);
    const std::int64_t columns = s.batch * divided_up(cut.packs, cut.tile);
    cut.slabs = std::clamp(divided_up(kTargetBlocks, columns), 1, most);
    cut.slab_size = divided_up(s.spatial, cut.slabs);
  } else {
    const int step = kWarp * pack;
    const int most = divided_up(s.spatial, std::int64_t{step} * kLeastRounds);
    const std::int64_t planes = s.batch * s.channels;
    cut.slabs = std::clamp(divided_up(std::int64_t{kTargetBlocks} * (kThreads / kWarp), planes), 1, most);
    cut.slab_size = divided_up(divided_up(s.spatial, cut.slabs), step) * step;
  }
  cut.slabs = divided_up(s.spatial, cut.slab_size);
  return cut;
}

inline dim3 group_norm_grid(const GroupNormCut& cut) {
  if (cut.channels_last) {
    return dim3(static_cast<unsigned>(divided_up(cut.packs, cut.tile)), static_cast<unsigned>(cut.slabs),
                static_cast<unsigned>(cut.batch));
  }
  return dim3(static_cast<unsigned>(divided_up(std::int64_t{cut.batch} * cut.channels * cut.slabs, kThreads / kWarp)));
}

// What one thread walks through: for (i = begin; i < end; i += step) the pack at image + base + i * stride. Its kPack
// numbers are kPack channels (channels_last) or kPack pixels of one channel.
template <int kPack, bool kChannelsLast>
struct Walk {
  static constexpr int kChannels = kChannelsLast ? kPack : 1;

  __device__ explicit Walk(const GroupNormCut& cut) {
    int slab;
    if constexpr (kChannelsLast) {
      const int column = blockIdx.x * cut.tile + threadIdx.x % cut.tile, row = threadIdx.x / cut.tile;
      image = blockIdx.z, slab = blockIdx.y;
      is_active = row < cut.rows && column < cut.packs;
      channel = is_active ? column * kPack : 0;
      base = channel, stride = cut.channels, step = cut.rows;
      begin = slab * cut.slab_size + row;
    } else {
      const std::int64_t unit = std::int64_t{blockIdx.x} * (kThreads / kWarp) + threadIdx.x / kWarp;
      const std::int64_t all = std::int64_t{cut.batch} * cut.slabs * cut.channels;
      is_active = unit < all;
      const int in_image = static_cast<int>(unit % (std::int64_t{cut.slabs} * cut.channels));
      image = is_active ? static_cast<int>(unit / (std::int64_t{cut.slabs} * cut.channels)) : 0;
      channel = in_image % cut.channels, slab = in_image / cut.channels;
      base = channel * cut.spatial, stride = 1, step = kWarp * kPack;
      begin = slab * cut.slab_size + static_cast<int>(threadIdx.x % kWarp) * kPack;
    }
    const int slab_end = (slab + 1) * cut.slab_size;
    end = !is_active ? begin : slab_end < cut.spatial ? slab_end : cut.spatial;
    partial = (std::int64_t{image} * cut.slabs + slab) * cut.channels;
  }

  // A value per channel of the pack.
  __device__ void load_columns(const float* of_all, const GroupNormCut& cut, float (&to)[kChannels]) const {
    const float* mine = of_all + std::int64_t{image} * cut.channels + channel;
    for (int v = 0; v < kChannels; ++v) to[v] = mine[v];
  }

  bool is_active;
  int image, channel;
  int base, stride, begin, end, step;
  std::int64_t partial;  // where the partial sums of channel 0 of this image and slab stand
};

// Whether rows (channels_last) or planes are whole packs of 16 bytes.
template <typename T>
bool packs_fit(const CudaGroupNorm& shape) {
  return (shape.channels_last ? shape.channels : shape.spatial) % kWide<T> == 0;
}

// Pixels of a slab.
__device__ inline int slab_pixels(const GroupNormCut& cut, int slab) {
  return slab + 1 < cut.slabs ? cut.slab_size : cut.spatial - slab * cut.slab_size;
}

// x at an image, in elements.
__device__ inline std::int64_t image_start(const GroupNormCut& cut, int image) {
  return std::int64_t{image} * cut.channels * cut.spatial;
}

// A channel's first pixel, in elements from the image's start.
__device__ inline int first_pixel(const GroupNormCut& cut, int channel) {
  return cut.channels_last ? channel : channel * cut.spatial;
}

}  // namespace sdtune::model
