#include "train/run/lora_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>

#include "model/base/json.h"
#include "model/files/base_name.h"
#include "model/files/model_fingerprint.h"
#include "model/schedule/prediction.h"
#include "model/single_file/model_spec.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;
using Metadata = std::map<std::string, std::string>;

// Names of files need not be UTF-8, and the header must.
std::string compact(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string folder_of(const Photo& photo) {
  return valid_text(fs::absolute(photo.path).lexically_normal().parent_path().filename().string());
}

std::string trimmed_lower(const std::string& text) {
  const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
  const auto begin = std::find_if_not(text.begin(), text.end(), is_space);
  const auto end = std::find_if_not(text.rbegin(), std::make_reverse_iterator(begin), is_space).base();
  std::string tag(begin, end);
  std::transform(tag.begin(), tag.end(), tag.begin(), [](unsigned char c) { return std::tolower(c); });
  return tag;
}

// How often each comma-separated part of the captions comes, by folder.
Json tag_frequency(const std::vector<Photo>& photos) {
  Json json = Json::object();
  for (const Photo& photo : photos) {
    Json& counts = json[folder_of(photo)];
    if (counts.is_null()) counts = Json::object();
    std::istringstream parts(valid_text(photo.caption));
    for (std::string part; std::getline(parts, part, ',');) {
      const std::string tag = trimmed_lower(part);
      if (!tag.empty()) counts[tag] = counts.value(tag, 0) + 1;
    }
  }
  return json;
}

Json photo_folders(const std::vector<Photo>& photos) {
  Json json = Json::object();
  for (const Photo& photo : photos) {
    Json& folder = json[folder_of(photo)];
    if (folder.is_null()) folder = {{"n_repeats", photo.repeats}, {"img_count", 0}};
    folder["img_count"] = folder["img_count"].get<std::int64_t>() + 1;
  }
  return json;
}

// model_util.get_model_version_str_for_sd1_sd2 of kohya's trainer, and its name for SDXL, which does not tell v.
std::string kohya_version(model::ModelFamily family, const model::ModelBundle& bundle) {
  if (family == model::ModelFamily::kSdxl) return "sdxl_base_v1-0";
  const model::PredictionType type = model::prediction_type_of(bundle.scheduler_config);
  const std::string version = family == model::ModelFamily::kSd1 ? "sd_v1" : "sd_v2";
  return type == model::PredictionType::kVPrediction ? version + "_v" : version;
}

void add_data(Metadata& metadata, const Run& run) {
  const std::vector<Photo>& photos = run.data.photos.photos;
  std::int64_t shown = 0;
  for (const Photo& photo : photos) shown += photo.repeats;
  metadata["ss_num_train_images"] = std::to_string(shown);
  metadata["ss_num_reg_images"] = std::to_string(run.data.class_images.size());
  metadata["ss_dataset_dirs"] = compact(photo_folders(photos));
  metadata["ss_tag_frequency"] = compact(tag_frequency(photos));
  metadata["ss_caption_dropout_rate"] = fmt::format("{}", run.config.data.caption_dropout_rate);
  metadata["ss_resolution"] = fmt::format("({0}, {0})", run.config.data.resolution.value_or(run.bundle.resolution()));
  metadata["ss_enable_bucket"] = run.config.data.enable_bucket ? "True" : "False";
}

void add_training(Metadata& metadata, const Run& run, std::int64_t step) {
  const RunOptions& options = run.config.run;
  const OptimOptions& optim = run.config.optim;
  const double text_rate = optim.text_encoder_lr.value_or(optim.learning_rate);
  metadata["ss_seed"] = std::to_string(options.seed);
  metadata["ss_max_train_steps"] = std::to_string(run.total_steps);
  metadata["ss_steps"] = std::to_string(step);
  metadata["ss_learning_rate"] = metadata["ss_unet_lr"] = fmt::format("{}", optim.learning_rate);
  metadata["ss_text_encoder_lr"] = run.trains_text() ? fmt::format("{}", text_rate) : "None";
  metadata["ss_lr_scheduler"] = optim.lr_scheduler;
  metadata["ss_lr_warmup_steps"] = std::to_string(optim.lr_warmup_steps);
  metadata["ss_optimizer"] = optim.chosen_optimizer();
  metadata["ss_max_grad_norm"] = fmt::format("{}", optim.max_grad_norm);
  metadata["ss_batch_size_per_device"] = std::to_string(options.train_batch_size);
  metadata["ss_total_batch_size"] = std::to_string(options.train_batch_size * run.group->world_size());
  metadata["ss_gradient_accumulation_steps"] = std::to_string(options.gradient_accumulation_steps);
  metadata["ss_gradient_checkpointing"] = options.gradient_checkpointing ? "True" : "False";
  metadata["ss_mixed_precision"] = run.config.precision.mixed_precision;
  metadata["ss_prior_loss_weight"] = fmt::format("{}", run.config.objective.prior_loss_weight);
  metadata["ss_noise_offset"] = fmt::format("{}", run.config.objective.noise_offset);
  metadata["ss_loss_type"] = run.config.objective.loss_type;
  const std::optional<double> gamma = run.config.objective.snr_gamma;
  metadata["ss_min_snr_gamma"] = gamma ? fmt::format("{}", *gamma) : "None";
  metadata["ss_zero_terminal_snr"] = run.config.objective.rescale_betas_zero_snr ? "True" : "False";
}

}  // namespace

std::map<std::string, std::string> lora_metadata(const Run& run, const std::string& title, const std::string& trigger,
                                                 std::int64_t step) {
  const std::optional<model::ModelFamily> family = model::published_family(run.bundle);
  const std::string base =
      valid_text(public_base_name(run.config.run.base.empty() ? run.bundle.folder.string() : run.config.run.base));
  Metadata metadata = {{"ss_network_module", "networks.lora"},
                       {"ss_network_dim", std::to_string(run.config.lora.rank)},
                       {"ss_network_alpha", fmt::format("{:g}", run.config.lora.alpha())},
                       {"ss_network_dropout", fmt::format("{}", run.config.lora.lora_dropout)},
                       {"ss_output_name", valid_text(title)},
                       {"ss_sd_model_name", base},
                       {"sdtune.base_fingerprint", model_fingerprint(run.bundle.folder)}};
  if (family) {
    metadata["ss_base_model_version"] = kohya_version(*family, run.bundle);
    metadata["ss_v2"] = *family == model::ModelFamily::kSd2 ? "True" : "False";
  }
  add_data(metadata, run);
  add_training(metadata, run, step);
  Metadata spec = model::model_spec(run.bundle, family, valid_text(title));
  // A base of one's own is an architecture of its own.
  spec["architecture"] = (family ? spec["architecture"] : base) + "/lora";
  spec["implementation"] = "diffusers";
  if (!trigger.empty()) spec["trigger_phrase"] = valid_text(trigger);
  for (const auto& [field, value] : spec) metadata["modelspec." + field] = value;
  return metadata;
}

}  // namespace sdtune::train
