// The largest numbers that a model's config.json may hold. A config is not to be trusted, and modules are built by it:
// without bounds 10^9 layers would fill the memory, and 10^12 channels would overflow a tensor's size. Each bound is
// the largest value of a published Stable Diffusion model (named beside it) times a margin of at least eight, so that
// no real model meets one.
#pragma once

#include <cstdint>

namespace sdtune::model {

inline constexpr std::int64_t kMaxChannels = 10240;        // of convolutions and transformers; SDXL: 1280
inline constexpr std::int64_t kMaxWidth = 65536;           // into or inside a linear layer; SDXL's second encoder: 5120
inline constexpr std::int64_t kMaxLevels = 32;             // of a UNet; SDXL's VAE and SD's UNet: 4
inline constexpr std::int64_t kMaxVaeLevels = 12;          // each halves the image: 2^11 px a latent pixel; 4
inline constexpr std::int64_t kMaxLayersPerBlock = 64;     // 2
inline constexpr std::int64_t kMaxTransformerDepth = 256;  // of one place; SDXL: 10
inline constexpr std::int64_t kMaxTransformerBlocks = 4096;  // of a whole UNet; SDXL: 70
inline constexpr std::int64_t kMaxTextLayers = 1024;         // SD 2.1: 23, SDXL's second encoder: 32
inline constexpr std::int64_t kMaxVocabulary = 1048576;      // tokens; CLIP: 49408
inline constexpr std::int64_t kMaxTextPositions = 4096;      // tokens; CLIP: 77, Long-CLIP: 248
inline constexpr std::int64_t kMaxKernel = 31;               // px of a convolution; 3
inline constexpr std::int64_t kMaxLatentSide = 4096;         // latent px of a UNet's sample_size; SDXL: 128
inline constexpr std::int64_t kMaxImageSide = 32768;         // px of a VAE's sample_size; SDXL: 1024

}  // namespace sdtune::model
