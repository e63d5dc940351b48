#include "model/kernels/winograd_blocks.h"

#include <ATen/Parallel.h>

#include <array>
#include <vector>

#include "model/kernels/winograd_tiles.h"

namespace sdtune::model::winograd {
namespace {

const Transforms& of_this_cpu() {
  static const Transforms& found = transforms(vectors_of_this_cpu().value());
  return found;
}

struct TileGrid {
  explicit TileGrid(const torch::Tensor& map)
      : batch(map.size(0)),
        height(map.size(2)),
        width(map.size(3)),
        rows((height + kTile - 1) / kTile),
        columns((width + kTile - 1) / kTile) {}

  int64_t batch, height, width, rows, columns;
};

// The pixels of square tiles in a map [B, C, H, W] in channels_last.
template <class Number>
class TilePixels {
 public:
  // `map`: its first channel that is wanted. `beyond` stands for every pixel beyond the map.
  TilePixels(const TileGrid& grid, Number* map, int64_t channels, Number* beyond)
      : grid_(grid), map_(map), channels_(channels), beyond_(beyond) {}

  // `side` x side pixels, row by row, from `before` pixels above and left of a tile's first on.
  void find(int64_t tile, int64_t side, int64_t before, Number** pixels) const {
    const int64_t column = tile % grid_.columns, row = tile / grid_.columns % grid_.rows;
    Number* const image = map_ + tile / (grid_.columns * grid_.rows) * grid_.height * grid_.width * channels_;
    for (int64_t i = 0; i < side; ++i) {
      const int64_t y = row * kTile + i - before;
      for (int64_t j = 0; j < side; ++j) {
        const int64_t x = column * kTile + j - before;
        const bool is_inside = y >= 0 && y < grid_.height && x >= 0 && x < grid_.width;
        pixels[i * side + j] = is_inside ? image + (y * grid_.width + x) * channels_ : beyond_;
      }
    }
  }

 private:
  const TileGrid& grid_;
  Number* map_;
  int64_t channels_;
  Number* beyond_;
};

// Room for `rows` of each position: [36, rows, channels].
torch::Tensor positions(int64_t rows, int64_t channels) {
  return torch::empty({kPositions, rows, channels}, torch::kFloat32);
}

Positions row_of(const torch::Tensor& all, int64_t row) {
  return {all.mutable_data_ptr<float>() + row * all.size(2), all.size(1) * all.size(2)};
}

ConstPositions const_row_of(const torch::Tensor& all, int64_t row) {
  return {all.const_data_ptr<float>() + row * all.size(2), all.size(1) * all.size(2)};
}

// What a transform reads: `side` x side pixels that begin `before` pixels above and left of what a tile gives.
struct Window {
  int64_t side, before;
};

template <class Number>
torch::Tensor transformed_tiles(const torch::Tensor& map, const TileBlock& block, const Window& window,
                                void (*transform)(const Number* const* pixels, int64_t channels, Positions out)) {
  const TileGrid grid(map);
  const int64_t channels = map.size(1);
  torch::Tensor out = positions(block.count, channels);
  const std::vector<Number> zeros(static_cast<size_t>(channels));
  const TilePixels<const Number> tiles(grid, map.const_data_ptr<Number>(), channels, zeros.data());
  at::parallel_for(0, block.count, 1, [&](int64_t begin, int64_t end) {
    std::array<const Number*, kSeen * kSeen> pixels;
    for (int64_t i = begin; i < end; ++i) {
      tiles.find(block.begin + i, window.side, window.before, pixels.data());
      transform(pixels.data(), channels, row_of(out, i));
    }
  });
  return out;
}

// `constants`: of the channels that are written, null for none.
template <class Number>
void write_tiles_of(const torch::Tensor& sums, const float* constants, const TileBlock& block, int64_t first,
                    const torch::Tensor& map,
                    void (*transform)(ConstPositions sums, const float* bias, int64_t channels,
                                      Number* const* pixels)) {
  const TileGrid grid(map);
  const int64_t written = sums.size(2);
  at::parallel_for(0, block.count, 1, [&](int64_t begin, int64_t end) {
    std::vector<Number> beyond(static_cast<size_t>(written));
    const TilePixels<Number> tiles(grid, map.mutable_data_ptr<Number>() + first, map.size(1), beyond.data());
    std::array<Number*, kTile * kTile> pixels;
    for (int64_t i = begin; i < end; ++i) {
      tiles.find(block.begin + i, kTile, 0, pixels.data());
      transform(const_row_of(sums, i), constants, written, pixels.data());
    }
  });
}

}  // namespace

int64_t tile_count(const torch::Tensor& map) {
  const TileGrid grid(map);
  return grid.batch * grid.rows * grid.columns;
}

torch::Tensor transformed_input(const torch::Tensor& x, const TileBlock& block) {
  constexpr Window kInput = {.side = kSeen, .before = 1};
  if (x.scalar_type() == torch::kBFloat16) return transformed_tiles(x, block, kInput, of_this_cpu().input_bfloat16);
  return transformed_tiles(x, block, kInput, of_this_cpu().input);
}

torch::Tensor transformed_gradient(const torch::Tensor& dy, const TileBlock& block) {
  return transformed_tiles(dy, block, {.side = kTile, .before = 0}, of_this_cpu().output_gradient);
}

void write_tiles(const torch::Tensor& sums, const torch::Tensor& bias, const TileBlock& block, int64_t first,
                 const torch::Tensor& map) {
  const float* constants = bias.defined() ? bias.const_data_ptr<float>() + first : nullptr;
  if (map.scalar_type() == torch::kBFloat16) {
    write_tiles_of(sums, constants, block, first, map, of_this_cpu().output_bfloat16);
  } else {
    write_tiles_of(sums, constants, block, first, map, of_this_cpu().output);
  }
}

torch::Tensor transformed_weight(const torch::Tensor& weight, const ChannelRange& outs, const ChannelRange& ins,
                                 bool flipped) {
  const int64_t in = weight.size(1);
  torch::Tensor result = positions(outs.count, ins.count);
  const auto* kernels = weight.const_data_ptr<float>();
  at::parallel_for(0, outs.count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = (outs.begin + i) * in + ins.begin;
      of_this_cpu().kernel(kernels + first * kTaps, ins.count, flipped, row_of(result, i));
    }
  });
  return result;
}

void write_weight_gradient(const torch::Tensor& sums, int64_t first_out, const torch::Tensor& gradient) {
  const int64_t in = gradient.size(1);
  auto* kernels = gradient.mutable_data_ptr<float>() + first_out * in * kTaps;
  at::parallel_for(0, sums.size(1), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      of_this_cpu().kernel_gradient(const_row_of(sums, i), in, kernels + i * in * kTaps);
    }
  });
}

}  // namespace sdtune::model::winograd
