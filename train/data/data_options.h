// The options of photos, captions, class pictures and how both become latents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/base/field.h"

namespace sdtune::train {

struct DataOptions {
  std::string images;  // folder of the photos; required for training, so empty is the run's error to report
  std::string instance_prompt = "a photo of sks person";
  bool use_captions = true;
  double caption_dropout_rate = 0.0;
  std::string on_bad_image = "stop";

  bool with_prior_preservation = false;
  std::string class_prompt = "a photo of a person";
  std::string class_data_dir;  // empty: class_images in the run folder
  std::int64_t num_class_images = 100;
  std::int64_t sample_batch_size = 4;

  std::optional<std::int64_t> resolution;  // px; unset: UNet sample_size x VAE factor
  bool center_crop = true;
  bool random_flip = false;
  std::string image_interpolation_mode = "lanczos";
  bool cache_latents = true;

  FieldList fields();
};

}  // namespace sdtune::train
