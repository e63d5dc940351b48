// One part of a diffusers folder as a module: config.json, then its weights.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <string>

#include "model/clip/text_encoder.h"
#include "model/unet/unet.h"
#include "model/vae/autoencoder_kl.h"

namespace sdtune::model {

// Each reads the folder `part` (unet/, vae/, text_encoder/), complete or WeightError; in evaluation mode.
UNet2DConditionModel load_unet(const std::filesystem::path& part, torch::Dtype dtype, torch::Device device);
AutoencoderKL load_vae(const std::filesystem::path& part, torch::Dtype dtype, torch::Device device);
// With projection where config.json's "architectures" says so.
CLIPTextModel load_text_encoder(const std::filesystem::path& part, torch::Dtype dtype, torch::Device device);

}  // namespace sdtune::model
