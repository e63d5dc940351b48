#include "model/vae/vae_tiling.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace sdtune::model {
namespace {

constexpr std::int64_t kOverlapsInTile = 4;
constexpr double kOverlap = 1.0 / static_cast<double>(kOverlapsInTile);  // of a tile's side

std::int64_t step_of(std::int64_t tile) {
  return static_cast<std::int64_t>(static_cast<double>(tile) * (1 - kOverlap));
}

// Lays the end of `before` over the beginning of `tile` along `dim`, fading from one to the other over `extent`.
void blend(const torch::Tensor& before, torch::Tensor& tile, std::int64_t dim, std::int64_t extent) {
  const std::int64_t length = std::min({before.size(dim), tile.size(dim), extent});
  if (length == 0) return;
  std::vector<std::int64_t> shape(4, 1);
  shape[static_cast<std::size_t>(dim)] = length;
  const torch::Tensor share =
      (torch::arange(length, tile.options().dtype(torch::kFloat32)) / static_cast<double>(length))
          .to(tile.scalar_type())
          .view(shape);
  torch::Tensor begin = tile.narrow(dim, 0, length);
  begin.copy_(before.narrow(dim, before.size(dim) - length, length) * (1 - share) + begin * share);
}

}  // namespace

bool needs_tiles(std::int64_t height, std::int64_t width, const TileSizes& sizes) {
  const std::int64_t cells = std::min(sizes.input, sizes.output), pixels = std::max(sizes.input, sizes.output);
  const bool meet = cells > 0 && cells % kOverlapsInTile == 0 && pixels % cells == 0;
  return meet && (height > sizes.input || width > sizes.input);
}

std::int64_t length_of_tiles(std::int64_t length, std::int64_t tile) {
  if (length <= tile) return length;
  std::int64_t sum = 0;
  for (std::int64_t begin = 0; begin < length; begin += step_of(tile)) sum += std::min(tile, length - begin);
  return sum;
}

torch::Tensor run_in_tiles(const torch::Tensor& x, const TileSizes& sizes,
                           const std::function<torch::Tensor(const torch::Tensor&)>& run) {
  const std::int64_t step = step_of(sizes.input);
  const auto extent = static_cast<std::int64_t>(static_cast<double>(sizes.output) * kOverlap);
  const std::int64_t kept = sizes.output - extent;
  std::vector<torch::Tensor> rows;
  std::vector<torch::Tensor> above;  // the tiles of the row before
  for (std::int64_t top = 0; top < x.size(2); top += step) {
    std::vector<torch::Tensor> tiles, pieces;
    for (std::int64_t left = 0; left < x.size(3); left += step) {
      const torch::Tensor part = x.narrow(2, top, std::min(sizes.input, x.size(2) - top))
                                     .narrow(3, left, std::min(sizes.input, x.size(3) - left));
      torch::Tensor tile = run(part.contiguous(x.suggest_memory_format()));
      if (!above.empty()) blend(above[tiles.size()], tile, 2, extent);
      if (!tiles.empty()) blend(tiles.back(), tile, 3, extent);
      pieces.push_back(tile.narrow(2, 0, std::min(kept, tile.size(2))).narrow(3, 0, std::min(kept, tile.size(3))));
      tiles.push_back(std::move(tile));
    }
    rows.push_back(torch::cat(pieces, 3));
    above = std::move(tiles);
  }
  return torch::cat(rows, 2);
}

}  // namespace sdtune::model
