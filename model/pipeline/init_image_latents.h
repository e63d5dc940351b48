// The init image of image to image as latents, and the timesteps that `strength` leaves out.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "model/pipeline/bundle.h"
#include "model/schedule/scheduler.h"

namespace sdtune::model {

// The VAE in the dtype that it decodes in: float32 where the bundle is float16 and the VAE asks for it. Scaled latents
// are what the UNet knows, the VAE's are without the scaling factor.
void prepare_vae(ModelBundle& bundle);

// How many of the scheduler's timesteps `strength` of `steps` leaves out at the start. Throws ConfigError naming
// "strength" outside 0 < strength <= 1, and where no step is left.
std::int64_t skipped_timesteps(const Scheduler& scheduler, std::int64_t steps, double strength);

// `image` [1 or B, 3, H, W] in [-1, 1], sampled from the distribution that the VAE gives, or latents [1 or B, C, h, w]
// as they are, as scaled latents [batch, C, h, w] in the UNet's dtype. An SDXL's VAE with force_upcast encodes in
// float32. Throws ConfigError naming "image" for another number of images.
torch::Tensor image_latents(ModelBundle& bundle, const torch::Tensor& image, std::int64_t batch, NoiseSource& noise,
                            bool draws_each);

// Latents [B, C, h, w] at another size, bilinearly.
torch::Tensor resized_latents(const torch::Tensor& latents, std::int64_t height, std::int64_t width);

}  // namespace sdtune::model
