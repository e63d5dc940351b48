// Everything of a diffusers folder but the weights: read at once, so that what does not belong together is found before
// gigabytes are.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/clip/clip_text_config.h"
#include "model/tokenizer/clip_tokenizer.h"
#include "model/unet/unet_config.h"
#include "model/vae/vae_config.h"
#include "model/weights/diffusers_folder.h"

namespace sdtune::model {

struct BundleConfigs {
  ModelIndex index;
  Json scheduler;  // scheduler_config.json, as read
  ClipTokenizer tokenizer;
  std::optional<ClipTokenizer> tokenizer_2;  // SDXL
  ClipTextConfig text_encoder;
  std::optional<ClipTextConfig> text_encoder_2;  // SDXL
  UNetConfig unet;
  VaeConfig vae;

  // Throws WeightError naming file and key for the first thing that is missing or not supported.
  static BundleConfigs read(const std::filesystem::path& folder);

  // Parts that are each right and do not fit each other: a tokenizer with more tokens than its text encoder, a UNet for
  // prompt embeddings or latents of another size. Empty when all fit.
  std::vector<Problem> find_misfits(const std::filesystem::path& folder) const;
};

// Throws WeightError for a scheduler that is not supported, naming the file to mend: its class stands in
// model_index.json, whatever its own file says.
void require_known_scheduler(const std::filesystem::path& folder, const std::string& class_name, const Json& config);

}  // namespace sdtune::model
