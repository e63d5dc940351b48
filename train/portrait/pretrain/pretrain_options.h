// The options of `sdtune pretrain`: how the portrait base is made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/options/field.h"

namespace sdtune::train::pretrain {

// Of one stage.
struct StageOptions {
  std::int64_t steps = 0;
  std::int64_t batch_size = 0;
  double learning_rate = 0;
};

struct PretrainOptions {
  std::string output = "runs/portrait-64";
  // images, features (of portrait-128), vae, classifier, text, base, figures, or all of them in this order
  std::string stage = "all";
  std::string design = "portrait";
  std::string initial_model;         // folder; empty: new weights
  std::string initial_classifier;    // folder; empty: new weights
  std::string initial_text_encoder;  // folder of a model; empty: new words and weights
  std::optional<double> minutes;     // of this call; unset: to the end
  std::int64_t seed = 0;
  std::string device = "auto";
  std::string mixed_precision = "default";
  std::int64_t first_image = 0;
  std::int64_t num_images = 65536;
  std::int64_t render_threads = 0;  // 0: as many as there are cores
  StageOptions vae{6000, 32, 1e-3};
  StageOptions features{1000, 128, 1e-3};
  std::int64_t features_images = 16384;    // of num_images, that the features stage sees
  std::optional<std::int64_t> vae_images;  // likewise of the vae stage
  bool vae_decoder_only = false;           // of initial_model, whose encoder and latents stay
  StageOptions classifier{8000, 128, 1e-3};
  StageOptions text{1500, 128, 1e-3};
  StageOptions base{60000, 32, 1e-3};
  double base_average_decay = 0.9995;
  std::optional<double> snr_gamma;
  double head_weight = 5.0;
  std::optional<std::int64_t> vae_adversarial_start;  // step; unset: half of the autoencoder's steps
  std::int64_t checkpointing_steps = 1000;
  std::int64_t evaluation_steps = 5000;
  std::int64_t figure_images = 512;

  FieldList fields();
};

}  // namespace sdtune::train::pretrain
