#include "train/run/run_identity.h"

#include <algorithm>

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
    "random_flip",
    "caption_dropout_rate",
    "use_ema",
    "ema_decay",
    "snr_gamma",
    "image_interpolation_mode",
    "noise_offset",
    "learning_rate",
    "prior_loss_weight",
    "text_encoder_lr",
    "num_class_images",
    "scale_lr",
    "lr_scheduler",
    "lr_warmup_steps",
    "lr_num_cycles",
    "lr_power",
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "adam_weight_decay",
    "max_grad_norm",
    "mixed_precision",
    "loss_type",
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
  // A constant rate does not depend on where the run ends; every other curve does.
  if (!config.optim.lr_scheduler.starts_with("constant")) {
    settings["max_train_steps"] = field_text(*find_field(fields, "max_train_steps"));
  }
  return settings;
}

std::map<std::string, std::string> identity_images(const std::vector<Photo>& photos,
                                                   const std::vector<fs::path>& class_images) {
  std::map<std::string, std::string> images;
  for (const Photo& photo : photos) {
    images[photo.path.filename().string()] = sha256_hex(photo.sha256 + "\n" + photo.caption);
  }
  for (const fs::path& picture : class_images) {
    images["class: " + picture.filename().string()] = sha256_of_file(picture);
  }
  return images;
}

}  // namespace sdtune::train
