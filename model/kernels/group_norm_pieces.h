// A feature map cut into the pieces that group norm works on in parallel, and each piece as tiles.
#pragma once

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>

#include "model/kernels/group_norm_tiles.h"
#include "model/products/sizes_only.h"

namespace sdtune::model {

// How a map [B, C, H, W] lies in memory, and its pieces: each is a channel block of one image.
struct MapLayout {
  MapLayout(const torch::Tensor& x, int64_t num_groups)
      : batch(x.size(0)),
        channels(x.size(1)),
        pixels(x.size(2) * x.size(3)),
        groups(num_groups),
        channels_last(x.is_contiguous(torch::MemoryFormat::ChannelsLast) && !x.is_contiguous()) {
    const bool few = batch * channels < kMaxTileWidth * 4 * at::get_num_threads();
    block = channels_last ? (few ? kFoldedTileWidth : kMaxTileWidth) : 1;
  }
  int64_t blocks() const { return (channels + block - 1) / block; }

  int64_t batch, channels, pixels, groups;
  bool channels_last;
  int64_t block;
};

// The tiles of one piece: channels_last has one; a contiguous plane is folded, with a last row of what is left.
struct PieceTiles {
  PieceTiles(const MapLayout& layout, int64_t piece) {
    const int64_t image = piece / layout.blocks();
    channel = piece % layout.blocks() * layout.block;
    column = image * layout.channels + channel;
    const int64_t start = image * layout.channels * layout.pixels;
    if (layout.channels_last) {
      channels = std::min(layout.block, layout.channels - channel);
      begin[0] = start + channel;
      tiles[0] = Tile{layout.pixels, layout.channels, channels};
      return;
    }
    folded = true;
    begin[0] = start + channel * layout.pixels;
    tiles[0] = Tile{layout.pixels / kFoldedTileWidth, kFoldedTileWidth, kFoldedTileWidth};
    begin[1] = begin[0] + tiles[0].rows * kFoldedTileWidth;
    const int64_t rest = layout.pixels - tiles[0].rows * kFoldedTileWidth;
    tiles[1] = Tile{rest > 0 ? 1 : 0, 0, rest};
  }

  // Per-channel values of this piece as per-column values: themselves, or one repeated over the folded columns.
  const float* columns(const float* per_channel, float* buffer) const {
    if (!folded) return per_channel + column;
    std::fill_n(buffer, kFoldedTileWidth, per_channel[column]);
    return buffer;
  }
  // Adds column sums to the per-channel sums.
  void add(const double* sums, double* per_channel) const {
    const int64_t width = folded ? kFoldedTileWidth : channels;
    for (int64_t j = 0; j < width; ++j) per_channel[column + (folded ? 0 : j)] += sums[j];
  }

  int64_t channel = 0, column = 0, channels = 1;
  bool folded = false;
  int64_t begin[2] = {0, 0};
  Tile tiles[2];
};

// Runs `work(tiles)` for each piece, in parallel. A piece is the work of one thread, in one order: results do not
// depend on the number of threads.
template <class Work>
void for_each_piece(const MapLayout& layout, const Work& work) {
  if (is_of_sizes_only()) return;
  at::parallel_for(0, layout.batch * layout.blocks(), 1, [&](int64_t first, int64_t last) {
    for (int64_t piece = first; piece < last; ++piece) work(PieceTiles(layout, piece));
  });
}

}  // namespace sdtune::model
