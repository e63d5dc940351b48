#include "train/run/run_identity.h"

#include <algorithm>
#include <cmath>

#include "model/base/sha256.h"

namespace sdtune::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kIdentityOptions[] = {
    "method",
    "seed",
    "train_text_encoder",
    "class_prompt",
    "with_prior_preservation",
    "resolution",
    "center_crop",
    "crop_style",
    "enable_bucket",
    "min_bucket_reso",
    "max_bucket_reso",
    "bucket_reso_steps",
    "bucket_no_upscale",
    "random_flip",
    "caption_dropout_rate",
    "rank",
    "lora_alpha",
    "lora_dropout",
    "lora_layers",
    "use_ema",
    "ema_decay",
    "snr_gamma",
    "image_interpolation_mode",
    "noise_offset",
    "rescale_betas_zero_snr",
    "learning_rate",
    "train_text_encoder_frac",
    "prior_loss_weight",
    "text_encoder_lr",
    "num_class_images",
    "class_num_inference_steps",
    "class_guidance_scale",
    "scale_lr",
    "lr_scheduler",
    "lr_warmup_steps",
    "lr_num_cycles",
    "lr_power",
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "adam_weight_decay",
    "lion_beta1",
    "lion_beta2",
    "prodigy_beta3",
    "prodigy_use_bias_correction",
    "prodigy_safeguard_warmup",
    "max_grad_norm",
    "mixed_precision",
    "loss_type",
    "masked_loss",
    "unmasked_weight",
    "normalize_masked_area_loss",
    "huber_c",
    "huber_schedule",
    "input_perturbation",
    "min_timestep",
    "max_timestep",
};

bool decides_numbers(const fs::path& file) {
  const std::string extension = file.extension().string();
  return extension == ".safetensors" || extension == ".json" || extension == ".txt";
}

// Whole pixels: where the crop lies follows from it.
std::string box_text(const model::ImageBox& box) {
  std::string text;
  for (const double value : {box.left, box.top, box.width, box.height})
    text += std::to_string(std::lround(value)) + " ";
  return text;
}

}  // namespace

std::string hash_of_base(const fs::path& base) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(base, fs::directory_options::follow_directory_symlink)) {
    if (entry.is_regular_file() && decides_numbers(entry.path())) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::string listing;
  for (const fs::path& file : files) {
    listing += file.lexically_relative(base).generic_string() + " " + sha256_of_file(file) + "\n";
  }
  return sha256_hex(listing);
}

std::map<std::string, std::string> identity_settings(const TrainConfig& config) {
  TrainConfig copy = config;
  const FieldList fields = copy.fields();
  std::map<std::string, std::string> settings;
  for (const char* name : kIdentityOptions) settings[name] = field_text(*find_field(fields, name));
  settings["optimizer"] = config.optim.chosen_optimizer();
  // A constant rate does not depend on where the run ends; every other curve does, and so does a share of the steps.
  const bool text_stops = config.run.train_text_encoder && config.optim.train_text_encoder_frac < 1;
  if (text_stops || !config.optim.lr_scheduler.starts_with("constant")) {
    settings["max_train_steps"] = field_text(*find_field(fields, "max_train_steps"));
  }
  return settings;
}

RunIdentity completed_identity(RunIdentity saved) {
  saved.settings.merge(identity_settings(TrainConfig()));
  return saved;
}

std::map<std::string, std::string> identity_images(const std::vector<Photo>& photos,
                                                   const std::vector<ClassPicture>& class_images) {
  std::map<std::string, std::string> images;
  for (const Photo& photo : photos) {
    std::string content = photo.sha256 + "\n" + photo.caption;
    if (photo.face) content.append("\nface ").append(box_text(*photo.face));
    if (photo.repeats > 1) content.append("\n").append(std::to_string(photo.repeats));
    images[photo.name] = sha256_hex(content);
  }
  for (const ClassPicture& picture : class_images) {
    std::string name = "class: " + picture.path.filename().string();
    if (images.contains(name)) name.append(" of ").append(picture.prompt);  // two subjects may have one name
    images[name] = sha256_hex(sha256_of_file(picture.path) + "\n" + picture.prompt);
  }
  return images;
}

}  // namespace sdtune::train
