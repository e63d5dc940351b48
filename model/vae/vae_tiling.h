// A large image tile by tile, as diffusers' AutoencoderKL.enable_tiling does it: the memory is that of one tile, and
// neighbours are blended over a quarter of it.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

namespace sdtune::model {

struct TileSizes {
  std::int64_t input;   // side of a tile that the network is given
  std::int64_t output;  // side of what it makes of it
};

// Whether an image (or its latents) of this size is larger than a tile. Never where a quarter of a tile, which
// neighbours share, is no whole number of latent cells: such tiles would not meet, and of one cell there is no next.
bool needs_tiles(std::int64_t height, std::int64_t width, const TileSizes& sizes);

// What the tiles of a side of `length` add up to, with what they share: `length` itself where one tile holds it.
std::int64_t length_of_tiles(std::int64_t length, std::int64_t tile);

// `run` over the tiles of x [B, C, H, W], blended. Each tile is made with its own group norms and attention, so the
// result is near that of the whole, not equal to it.
torch::Tensor run_in_tiles(const torch::Tensor& x, const TileSizes& sizes,
                           const std::function<torch::Tensor(const torch::Tensor&)>& run);

}  // namespace sdtune::model
