#include "train/config/resolve_options.h"

#include "model/base/error.h"
#include "train/config/run_folder.h"

namespace sdtune::train {

namespace {

constexpr double kFormerGuidance = 7.5;  // of class images, whatever the base
constexpr const char* kFormerGuidanceText = "7.5";

}  // namespace

void resolve_options(TrainConfig& config, const BaseDefaults& base, const std::string& recorded_guidance) {
  const RunFolder folder = run_folder(config);
  if (!config.data.resolution) {
    config.data.resolution = base.resolution;
    config.origins["resolution"] = "the base";
  }
  if (!config.data.class_guidance_scale) {
    const bool is_former = recorded_guidance == kFormerGuidanceText;
    config.data.class_guidance_scale = is_former ? kFormerGuidance : base.guidance_scale;
    config.origins["class_guidance_scale"] = is_former ? "the checkpoint" : "the base";
  }
  if (config.data.class_data_dir.empty()) config.data.class_data_dir = folder.class_images().string();
  config.run.output = folder.root.string();
}

std::string keep_effective_batch(TrainConfig& config, std::int64_t ranks, std::int64_t effective_batch) {
  const std::int64_t at_once = config.run.train_batch_size * ranks;
  if (effective_batch == at_once * config.run.gradient_accumulation_steps) return "";
  const std::string batch = std::to_string(effective_batch);
  if (effective_batch % at_once != 0) {
    throw ConfigError("train_batch_size", "the checkpoint has an effective batch of " + batch + ", which " +
                                              std::to_string(ranks) + " rank(s) of " +
                                              std::to_string(config.run.train_batch_size) + " cannot make");
  }
  config.run.gradient_accumulation_steps = effective_batch / at_once;
  config.origins["gradient_accumulation_steps"] = "the checkpoint's effective batch";
  return "gradient_accumulation_steps is " + std::to_string(config.run.gradient_accumulation_steps) +
         ", which keeps the checkpoint's effective batch of " + batch;
}

}  // namespace sdtune::train
