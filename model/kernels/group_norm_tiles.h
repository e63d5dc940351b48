// The inner loops of group norm on the CPU, over tiles: `rows` rows of `width` values, `stride` values apart, with one
// coefficient a column. A channels_last map is one tile a block of channels; a plane of a contiguous map is folded into
// rows whose columns all have the same coefficient.
#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>

namespace sdtune::model {

inline constexpr int64_t kMaxTileWidth = 64;
inline constexpr int64_t kFoldedTileWidth = 16;  // columns into which a contiguous plane is folded

struct Tile {
  int64_t rows = 0;
  int64_t stride = 0;
  int64_t width = 0;  // <= kMaxTileWidth
};

// Column sums of x and x^2, added to sum and square.
void tile_moments(const float* x, const Tile& tile, double* sum, double* square);
void tile_moments(const c10::BFloat16* x, const Tile& tile, double* sum, double* square);

// y = act(scale * x + shift), act = SiLU or nothing.
struct TileAffine {
  const float* scale;
  const float* shift;
  bool silu;
};
void tile_apply(const float* x, float* y, const Tile& tile, const TileAffine& affine);
void tile_apply(const c10::BFloat16* x, c10::BFloat16* y, const Tile& tile, const TileAffine& affine);

// With z = scale * x + shift and dz = dy * act'(z): column sums of dz and dz * x, added to sum and product.
void tile_gradient_sums(const float* x, const float* dy, const Tile& tile, const TileAffine& affine, double* sum,
                        double* product);
void tile_gradient_sums(const c10::BFloat16* x, const c10::BFloat16* dy, const Tile& tile, const TileAffine& affine,
                        double* sum, double* product);

// dx = by_dz * dz + by_x * x + constant.
struct TileGradient {
  const float* by_dz;
  const float* by_x;
  const float* constant;
};
void tile_gradient(const float* x, const float* dy, float* dx, const Tile& tile, const TileAffine& affine,
                   const TileGradient& gradient);
void tile_gradient(const c10::BFloat16* x, const c10::BFloat16* dy, c10::BFloat16* dx, const Tile& tile,
                   const TileAffine& affine, const TileGradient& gradient);

}  // namespace sdtune::model
