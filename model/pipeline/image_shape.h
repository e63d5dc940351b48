// The sizes of the images that a model is made for.
#pragma once

#include <cstdint>
#include <filesystem>

#include "model/unet/unet_config.h"
#include "model/vae/vae_config.h"

namespace sdtune::model {

struct ImageShape {
  std::int64_t resolution = 512;  // px, the side that the UNet was trained for: its sample_size in cells of the latent
  std::int64_t step = 64;         // px, sides that VAE and UNet halve evenly are multiples of it
};

ImageShape image_shape(const UNetConfig& unet, const VaeConfig& vae);

// From the configs of a diffusers folder, without loading it. Throws WeightError.
ImageShape read_image_shape(const std::filesystem::path& folder);

}  // namespace sdtune::model
