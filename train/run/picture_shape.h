// What a base says of the pictures it is trained on, read without loading it.
#pragma once

#include <cstdint>
#include <filesystem>

namespace sdtune::train {

struct PictureShape {
  std::int64_t resolution = 512;  // px, UNet sample_size x VAE factor
  std::int64_t step = 64;         // px, sides that VAE and UNet halve evenly are multiples of it
};

// From the configs of a diffusers folder. Throws WeightError.
PictureShape picture_shape(const std::filesystem::path& base);

}  // namespace sdtune::train
