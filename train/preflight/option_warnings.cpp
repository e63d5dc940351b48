#include "train/preflight/option_warnings.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "train/config/concept_options.h"
#include "train/config/preset.h"
#include "train/config/run_folder.h"

namespace sdtune::train {

namespace {

// Options that only count where `decider` has one of some values.
struct DependentOptions {
  bool is_used;
  const char* decider;
  const char* values;
  std::vector<const char*> names;
};

std::vector<DependentOptions> dependent_options(const TrainConfig& config) {
  const OptimOptions& optim = config.optim;
  const ObserveOptions& observe = config.observe;
  const std::string optimizer = optim.chosen_optimizer();
  const bool has_moments = optimizer.starts_with("adamw") || optimizer == "prodigy";
  const bool shows_images = !observe.validation_prompt.empty();
  const char* yes = "true";
  return {
      {config.run.train_text_encoder, "train_text_encoder", yes, {"text_encoder_lr", "train_text_encoder_frac"}},
      {config.data.with_prior_preservation,
       "with_prior_preservation",
       yes,
       {"class_data_dir", "num_class_images", "prior_loss_weight"}},
      {config.data.enable_bucket,
       "enable_bucket",
       yes,
       {"min_bucket_reso", "max_bucket_reso", "bucket_reso_steps", "bucket_no_upscale"}},
      {config.objective.masked_loss, "masked_loss", yes, {"unmasked_weight", "normalize_masked_area_loss"}},
      {config.objective.loss_type != "l2", "loss_type", "huber or smooth_l1", {"huber_c", "huber_schedule"}},
      {optim.use_ema, "use_ema", yes, {"ema_decay", "offload_ema"}},
      {optim.lr_scheduler != "constant", "lr_scheduler", "another one than constant", {"lr_warmup_steps"}},
      {optim.lr_scheduler == "cosine_with_restarts", "lr_scheduler", "cosine_with_restarts", {"lr_num_cycles"}},
      {optim.lr_scheduler == "polynomial", "lr_scheduler", "polynomial", {"lr_power"}},
      {has_moments, "optimizer", "adamw, adamw_8bit or prodigy", {"adam_beta1", "adam_beta2", "adam_epsilon"}},
      {optimizer == "lion", "optimizer", "lion", {"lion_beta1", "lion_beta2"}},
      {optimizer == "prodigy",
       "optimizer",
       "prodigy",
       {"prodigy_beta3", "prodigy_use_bias_correction", "prodigy_safeguard_warmup"}},
      {!config.run.max_train_steps, "max_train_steps", "none", {"num_train_epochs"}},
      {shows_images,
       "validation_prompt",
       "given",
       {"validation_negative_prompt", "num_validation_images", "validation_inference_steps",
        "validation_guidance_scale"}},
      {shows_images || !observe.validation_data_dir.empty(),
       "validation_prompt",
       "given, or validation_data_dir",
       {"validation_steps"}},
  };
}

// A file and its line; a flag and a keyword of Python have no colon.
bool is_place_in_file(const std::string& origin) {
  return origin.find(':') != std::string::npos;
}

// Whether the user gave it, and nothing that was given beside it says that it is not wanted.
bool is_meant(const TrainConfig& config, const std::string& name, const std::string& decider) {
  const auto origin = config.origins.find(name), of_decider = config.origins.find(decider);
  if (origin == config.origins.end() || is_of_preset(config, name)) return false;
  const bool replaces_file = of_decider != config.origins.end() && !is_place_in_file(of_decider->second);
  return !replaces_file || !is_place_in_file(origin->second);
}

// What a run writes into the folder of the photos would be photos of the next run.
void add_shared_folders(const TrainConfig& config, std::vector<Problem>& warnings) {
  std::vector<Problem> reported_by_the_images;
  for (const ConceptOptions& subject : concepts_of(config.data, reported_by_the_images)) {
    const auto is_of_photos = [&](const std::filesystem::path& folder) {
      std::error_code status;  // of a folder that is not there yet
      return !folder.empty() && std::filesystem::equivalent(subject.images, folder, status);
    };
    if (config.data.with_prior_preservation && is_of_photos(subject.class_data_dir)) {
      warnings.push_back({"class_data_dir", "is the folder of the photos (got " + subject.class_data_dir + ")",
                          "they are trained as images of the class too, and generated ones come among them"});
    }
    if (is_of_photos(run_folder(config).root)) {
      warnings.push_back({"output", "is the folder of the photos (got " + run_folder(config).root.string() + ")",
                          "images that are written there would be photos of the next run"});
    }
  }
}

}  // namespace

std::vector<Problem> option_warnings(const TrainConfig& config) {
  TrainConfig given = config, defaults;
  const FieldList fields = given.fields(), default_fields = defaults.fields();
  std::vector<Problem> warnings;
  for (const DependentOptions& group : dependent_options(config)) {
    if (group.is_used) continue;
    for (const char* name : group.names) {
      const std::string value = field_text(*find_field(fields, name));
      // config.yaml of a run lists all options
      if (value == field_text(*find_field(default_fields, name)) || !is_meant(config, name, group.decider)) continue;
      warnings.push_back(
          {name, "has no effect unless " + std::string(group.decider) + " is " + group.values + " (got " + value + ")",
           ""});
    }
  }
  add_shared_folders(config, warnings);
  return warnings;
}

}  // namespace sdtune::train
