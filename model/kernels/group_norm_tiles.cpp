#include "model/kernels/group_norm_tiles.h"

#include <algorithm>

#include "model/products/vector_math.h"

namespace sdtune::model {
namespace {

// Rows that are summed in float32 before they join the double sums: few enough to lose nothing that matters.
constexpr int64_t kRowsPerFlush = 32;

// The derivative of the activation times dy.
template <bool kSilu>
SDTUNE_INLINE float activation_gradient(float dy, float z) {
  if constexpr (!kSilu) return dy;
  const float s = fast_sigmoid(z);
  return dy * s * (1.0f + z * (1.0f - s));
}

template <class T>
SDTUNE_INLINE void moments(const T* x, Tile tile, double* sum, double* square) {
  for (int64_t begin = 0; begin < tile.rows; begin += kRowsPerFlush) {
    const int64_t end = std::min(begin + kRowsPerFlush, tile.rows);
    float sums[kMaxTileWidth] = {}, squares[kMaxTileWidth] = {};
    for (int64_t row = begin; row < end; ++row) {
      const T* in = x + row * tile.stride;
      for (int64_t j = 0; j < tile.width; ++j) {
        const float value = load(in + j);
        sums[j] += value;
        squares[j] += value * value;
      }
    }
    for (int64_t j = 0; j < tile.width; ++j) {
      sum[j] += sums[j];
      square[j] += squares[j];
    }
  }
}

// x and y may be the same map; a number is read before it is written, and no other is needed.
template <bool kSilu, class T>
SDTUNE_INLINE void apply(const T* x, T* y, Tile tile, const TileAffine& affine) {
  const float* __restrict scale = affine.scale;
  const float* __restrict shift = affine.shift;
  for (int64_t row = 0; row < tile.rows; ++row) {
    const T* in = x + row * tile.stride;
    T* out = y + row * tile.stride;
#pragma GCC ivdep
    for (int64_t j = 0; j < tile.width; ++j) {
      const float z = scale[j] * load(in + j) + shift[j];
      store(out + j, kSilu ? z * fast_sigmoid(z) : z);
    }
  }
}

template <bool kSilu, class T>
SDTUNE_INLINE void gradient_sums(const T* x, const T* dy, Tile tile, const TileAffine& affine, double* sum,
                                 double* product) {
  const float* __restrict scale = affine.scale;
  const float* __restrict shift = affine.shift;
  for (int64_t begin = 0; begin < tile.rows; begin += kRowsPerFlush) {
    const int64_t end = std::min(begin + kRowsPerFlush, tile.rows);
    float sums[kMaxTileWidth] = {}, products[kMaxTileWidth] = {};
    for (int64_t row = begin; row < end; ++row) {
      const T* in = x + row * tile.stride;
      const T* gradient = dy + row * tile.stride;
      for (int64_t j = 0; j < tile.width; ++j) {
        const float value = load(in + j);
        const float dz = activation_gradient<kSilu>(load(gradient + j), scale[j] * value + shift[j]);
        sums[j] += dz;
        products[j] += dz * value;
      }
    }
    for (int64_t j = 0; j < tile.width; ++j) {
      sum[j] += sums[j];
      product[j] += products[j];
    }
  }
}

template <bool kSilu, class T>
SDTUNE_INLINE void input_gradient(const T* __restrict x, const T* __restrict dy, T* __restrict dx, Tile tile,
                                  const TileAffine& affine, const TileGradient& by) {
  const float* __restrict scale = affine.scale;
  const float* __restrict shift = affine.shift;
  const float* __restrict by_dz = by.by_dz;
  const float* __restrict by_x = by.by_x;
  const float* __restrict constant = by.constant;
  for (int64_t row = 0; row < tile.rows; ++row) {
    const int64_t at = row * tile.stride;
    for (int64_t j = 0; j < tile.width; ++j) {
      const float value = load(x + at + j);
      const float dz = activation_gradient<kSilu>(load(dy + at + j), scale[j] * value + shift[j]);
      store(dx + at + j, by_dz[j] * dz + by_x[j] * value + constant[j]);
    }
  }
}

// The tile with its width known at compile time, so that a row is whole vectors.
template <int64_t kWidth>
SDTUNE_INLINE Tile known_width(const Tile& tile) {
  return Tile{tile.rows, tile.stride, kWidth};
}

}  // namespace

// target_clones takes no templates, so each instance is written out.
#define SDTUNE_TILE_KERNELS(T)                                                                                     \
  SDTUNE_CPU_CLONES void tile_moments(const T* x, const Tile& tile, double* sum, double* square) {                 \
    if (tile.width == kMaxTileWidth) return moments(x, known_width<kMaxTileWidth>(tile), sum, square);             \
    if (tile.width == kFoldedTileWidth) return moments(x, known_width<kFoldedTileWidth>(tile), sum, square);       \
    moments(x, tile, sum, square);                                                                                 \
  }                                                                                                                \
  SDTUNE_CPU_CLONES void tile_apply(const T* x, T* y, const Tile& tile, const TileAffine& affine) {                \
    if (!affine.silu) return apply<false>(x, y, tile, affine);                                                     \
    if (tile.width == kMaxTileWidth) return apply<true>(x, y, known_width<kMaxTileWidth>(tile), affine);           \
    if (tile.width == kFoldedTileWidth) return apply<true>(x, y, known_width<kFoldedTileWidth>(tile), affine);     \
    apply<true>(x, y, tile, affine);                                                                               \
  }                                                                                                                \
  SDTUNE_CPU_CLONES void tile_gradient_sums(const T* x, const T* dy, const Tile& tile, const TileAffine& affine,   \
                                            double* sum, double* product) {                                        \
    if (!affine.silu) return gradient_sums<false>(x, dy, tile, affine, sum, product);                              \
    if (tile.width == kMaxTileWidth) {                                                                             \
      return gradient_sums<true>(x, dy, known_width<kMaxTileWidth>(tile), affine, sum, product);                   \
    }                                                                                                              \
    if (tile.width == kFoldedTileWidth) {                                                                          \
      return gradient_sums<true>(x, dy, known_width<kFoldedTileWidth>(tile), affine, sum, product);                \
    }                                                                                                              \
    gradient_sums<true>(x, dy, tile, affine, sum, product);                                                        \
  }                                                                                                                \
  SDTUNE_CPU_CLONES void tile_gradient(const T* x, const T* dy, T* dx, const Tile& tile, const TileAffine& affine, \
                                       const TileGradient& gradient) {                                             \
    if (!affine.silu) return input_gradient<false>(x, dy, dx, tile, affine, gradient);                             \
    if (tile.width == kMaxTileWidth) {                                                                             \
      return input_gradient<true>(x, dy, dx, known_width<kMaxTileWidth>(tile), affine, gradient);                  \
    }                                                                                                              \
    if (tile.width == kFoldedTileWidth) {                                                                          \
      return input_gradient<true>(x, dy, dx, known_width<kFoldedTileWidth>(tile), affine, gradient);               \
    }                                                                                                              \
    input_gradient<true>(x, dy, dx, tile, affine, gradient);                                                       \
  }

SDTUNE_TILE_KERNELS(float)
SDTUNE_TILE_KERNELS(c10::BFloat16)

}  // namespace sdtune::model
