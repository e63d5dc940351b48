// A whole Stable Diffusion model as one value: what a diffusers folder holds.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/base/json.h"
#include "model/clip/text_encoder.h"
#include "model/files/file_system.h"
#include "model/pipeline/image_shape.h"
#include "model/pipeline/learned_tokens.h"
#include "model/tokenizer/clip_tokenizer.h"
#include "model/unet/unet.h"
#include "model/vae/autoencoder_kl.h"

namespace sdtune::model {

// Modules are shared handles: copying a bundle does not copy weights.
struct ModelBundle {
  std::string pipeline_class;  // StableDiffusionPipeline or StableDiffusionXLPipeline
  ClipTokenizer tokenizer;
  std::optional<ClipTokenizer> tokenizer_2;  // SDXL
  CLIPTextModel text_encoder{nullptr};
  CLIPTextModel text_encoder_2{nullptr};  // SDXL, with projection
  UNet2DConditionModel unet{nullptr};
  AutoencoderKL vae{nullptr};
  std::string scheduler_class;                // as in model_index.json
  Json scheduler_config;                      // scheduler_config.json, as read
  bool force_zeros_for_empty_prompt = false;  // SDXL's setting in model_index.json
  std::filesystem::path folder;               // where it was read
  // Of textual inversions (textual_inversion.h), for each text encoder; no part of the model that is saved.
  std::vector<LearnedToken> learned_tokens = {};
  std::vector<LearnedToken> learned_tokens_2 = {};  // SDXL

  bool is_xl() const { return pipeline_class == "StableDiffusionXLPipeline"; }
  torch::Dtype dtype() const;    // of the UNet
  torch::Device device() const;  // of the UNet
  // Moves and casts every component.
  void to(torch::Dtype dtype, torch::Device device);
  // Latent cells times this are pixels.
  std::int64_t vae_factor() const { return vae->config().downscale(); }
  ImageShape image_shape() const { return model::image_shape(unet->config(), vae->config()); }
  // The side that the UNet was trained for, px.
  std::int64_t resolution() const { return image_shape().resolution; }
};

// Reads a diffusers folder. Throws WeightError naming file and key for a pipeline, component or setting we do not
// support, and for weights that are missing, unexpected or of a wrong shape.
ModelBundle load_bundle(const std::filesystem::path& folder, torch::Dtype dtype, torch::Device device);

// What save_bundle does besides writing weights as they are.
struct SaveOptions {
  // Parts ("vae", "text_encoder", ..) that are what bundle.folder has, whatever the modules were cast to: their files
  // are copied byte by byte, or, where they are stored in another dtype, their values are written in that of the
  // others.
  std::vector<std::string> unchanged = {};
  // May put more files into the folder that it is given, before that takes its name.
  std::function<void(const std::filesystem::path&)> add = {};
};

// Writes a folder that diffusers' from_pretrained loads, whole or not at all (model/files/atomic_folder.h), and reads
// it again: done means that every weight, cast to `dtype`, came back bit by bit. Throws StorageError, and WeightError
// where an unchanged part cannot be read; an existing folder is then what it was.
void save_bundle(FileSystem& files, const ModelBundle& bundle, const std::filesystem::path& folder, torch::Dtype dtype,
                 const SaveOptions& options = {});

// `name` as a folder, or, for org/name, its snapshot in the local Hugging Face cache (model/files/hub_cache.h); never
// downloads. Throws WeightError whose hint is the command that fetches it.
std::filesystem::path find_base(const std::string& name);

}  // namespace sdtune::model
