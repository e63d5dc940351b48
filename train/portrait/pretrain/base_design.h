// The portrait base as it is before training: its sizes, its schedule, its words. One place, so that the model card and
// the tests agree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/pipeline/bundle.h"
#include "model/tokenizer/clip_tokenizer.h"
#include "train/portrait/scene/person.h"

namespace sdtune::train::pretrain {

// How large the base is, and what its autoencoder is trained with. "portrait" and "portrait-128" are what ships; "nano"
// runs the whole recipe in a minute, for tests.
struct BaseDesign {
  std::int64_t image_size = 64;  // px
  portrait::Detail detail = portrait::Detail::k64;
  std::int64_t vocabulary = 1024;  // ids
  std::int64_t text_hidden = 128;
  std::int64_t text_layers = 4;
  std::vector<std::int64_t> unet_channels = {64, 128, 192};  // a level each; transformers below the first
  std::vector<std::int64_t> vae_channels = {24, 48, 96};
  std::int64_t vae_groups = 8;  // of its norms
  std::int64_t latent_channels = 6;
  // Of VaeStageOptions; with a perceptual term the classifier is trained on renders before the autoencoder.
  double vae_head_weight = 1.0;
  double vae_mark_weight = 1.0;
  double perceptual_weight = 0;
  double adversarial_share = 0;
  std::string preset = "portrait-64";  // of train's defaults for it: full_NAME.yaml and lora_NAME.yaml

  // Throws ConfigError naming --design.
  static BaseDesign named(const std::string& name);
  // Places a side of the latents.
  std::int64_t latent_size() const { return image_size >> (vae_channels.size() - 1); }
};

// The noise of the base in training and in sampling: v-prediction on Stable Diffusion's schedule, brought to an end
// where nothing but noise is left (Lin et al., "Common diffusion noise schedules and sample steps are flawed", WACV
// 2024).
void set_base_schedule(model::ModelBundle& bundle);

// New modules with weights drawn from `seed`, float32 on the CPU, on the base's schedule.
model::ModelBundle new_base(const BaseDesign& design, ClipTokenizer tokenizer, std::uint64_t seed);

}  // namespace sdtune::train::pretrain
