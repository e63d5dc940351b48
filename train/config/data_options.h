// The options of photos, captions, class images and how both become latents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/config/train_option_group.h"

namespace sdtune::train {

// Upper bounds, of the run and of each of its concepts.
inline constexpr double kMostRepeats = 10000;
inline constexpr double kMostClassImages = 100000;

struct DataOptions {
  std::string images;  // folder of the photos; required for training, so empty is the run's error to report
  std::string instance_prompt = "a photo of sks person";
  std::vector<std::string> concepts;  // several subjects: a JSON object each (concept_options.h)
  std::int64_t repeats = 1;
  bool use_captions = true;
  double auto_caption_rate = 0.0;
  std::string trigger_word;
  double caption_dropout_rate = 0.0;
  std::string on_bad_image = "stop";

  bool with_prior_preservation = false;
  std::string class_prompt = "a photo of a person";
  std::string class_data_dir;  // empty: class_images in the run folder
  std::int64_t num_class_images = 100;
  std::int64_t sample_batch_size = 4;
  std::int64_t class_num_inference_steps = 50;  // diffusers' defaults
  std::optional<double> class_guidance_scale;   // unset: the base's, 7.5 and 5 for SDXL

  std::optional<std::int64_t> resolution;  // px; unset: UNet sample_size x VAE factor
  bool center_crop = true;
  std::optional<std::string> crop_style;  // center, face, random; unset: as center_crop says
  std::string face_model;
  bool enable_bucket = false;
  std::optional<std::int64_t> min_bucket_reso;    // px; unset: half of resolution
  std::optional<std::int64_t> max_bucket_reso;    // px; unset: twice resolution
  std::optional<std::int64_t> bucket_reso_steps;  // px; unset: what VAE and UNet halve evenly
  bool bucket_no_upscale = true;
  bool random_flip = false;
  std::string image_interpolation_mode = "lanczos";
  bool vae_tiling = false;
  bool cache_latents = true;
  std::string cache_dir;  // empty: the run's own folder `cache`, if it has one

  // center, face or random, whichever option said so.
  std::string crop() const;
  // Whether latents are made once: where the crop is random, each step cuts and encodes anew.
  bool caches_latents() const { return cache_latents && crop() != "random"; }
  TrainFieldList fields();
};

}  // namespace sdtune::train
