// Feature maps and weights as float32 matrices of transformed numbers (winograd_tiles.h), some tiles at a time. Maps
// are of float32 or bfloat16, where no gradient is mentioned; weights and biases of float32.
#pragma once

#include <torch/types.h>

#include <algorithm>

namespace sdtune::model::winograd {

// Some of a batch's tiles, [begin, begin + count): image by image, row by row; the last ones of a row or column reach
// beyond the map.
struct TileBlock {
  int64_t begin, count;
};
// Channels [begin, begin + count) of a weight that come out of it or go into it.
struct ChannelRange {
  int64_t begin, count;
};

// Tiles of a map [B, C, H, W].
int64_t tile_count(const torch::Tensor& map);

// The tiles of a map in blocks: `run` is called for each. Their numbers of `channels` channels, in and out, are in
// memory together, about as many as the products' other matrix of `weight_numbers`, so that neither is read too often.
template <class Run>
void for_each_block(int64_t tiles, int64_t channels, int64_t weight_numbers, const Run& run) {
  constexpr int64_t kPositionsOfTile = 36, kLeast = int64_t{1} << 20, kMost = int64_t{8} << 20;  // numbers
  const int64_t numbers = std::clamp(2 * weight_numbers, kLeast, kMost);
  const int64_t most = std::max<int64_t>(numbers / (kPositionsOfTile * channels), 32);
  const int64_t blocks = (tiles + most - 1) / most, count = (tiles + blocks - 1) / std::max<int64_t>(blocks, 1);
  for (int64_t begin = 0; begin < tiles; begin += count) run(TileBlock{begin, std::min(count, tiles - begin)});
}

// x [B, C, H, W] in channels_last -> [36, count, C]: the tiles as a convolution reads them.
torch::Tensor transformed_input(const torch::Tensor& x, const TileBlock& block);
// dy [B, C, H, W] likewise: the gradient of a convolution's result.
torch::Tensor transformed_gradient(const torch::Tensor& dy, const TileBlock& block);
// The sums [36, count, n] of a block, and bias [C] or undefined, into the channels from `first` on of its tiles
// of `map` [B, C, H, W].
void write_tiles(const torch::Tensor& sums, const torch::Tensor& bias, const TileBlock& block, int64_t first,
                 const torch::Tensor& map);

// weight [out, in, 3, 3] -> [36, outs.count, ins.count]; `flipped`: of the kernels turned by 180 degrees.
torch::Tensor transformed_weight(const torch::Tensor& weight, const ChannelRange& outs, const ChannelRange& ins,
                                 bool flipped);
// The gradient [36, n, in] of some transformed kernels into those of `gradient` [out, in, 3, 3] from `first_out` on.
void write_weight_gradient(const torch::Tensor& sums, int64_t first_out, const torch::Tensor& gradient);

}  // namespace sdtune::model::winograd
