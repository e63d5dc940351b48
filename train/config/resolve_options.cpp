#include "train/config/resolve_options.h"

#include "model/base/error.h"
#include "train/config/run_folder.h"

namespace sdtune::train {

namespace {

constexpr double kFormerGuidance = 7.5;  // of class images, whatever the base
constexpr const char* kFormerGuidanceText = "7.5";

std::string ranks_text(std::int64_t ranks) {
  return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

// The nearest numbers of ranks, and the largest smaller train_batch_size, that make the batch.
std::string what_fits(std::int64_t ranks, std::int64_t each, std::int64_t effective_batch) {
  const auto accumulation = [&](std::int64_t others, std::int64_t size) {
    return " with gradient_accumulation_steps " + std::to_string(effective_batch / (others * size));
  };
  std::string text;
  const auto say = [&](const std::string& way) { text += (text.empty() ? "" : ", or ") + way; };
  for (std::int64_t size = each - 1; size > 0; --size) {
    if (effective_batch % (ranks * size) != 0) continue;
    say("train_batch_size " + std::to_string(size) + accumulation(ranks, size));
    break;
  }
  for (std::int64_t fewer = ranks - 1; fewer > 0; --fewer) {
    if (effective_batch % (fewer * each) != 0) continue;
    say(ranks_text(fewer) + accumulation(fewer, each));
    break;
  }
  for (std::int64_t more = ranks + 1; more * each <= effective_batch; ++more) {
    if (effective_batch % (more * each) != 0) continue;
    say(ranks_text(more) + accumulation(more, each));
    break;
  }
  return text;
}

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
    const std::int64_t each = config.run.train_batch_size;
    throw ConfigError("train_batch_size",
                      "the checkpoint has an effective batch of " + batch + ", which " + ranks_text(ranks) +
                          " of train_batch_size " + std::to_string(each) +
                          " cannot make with any gradient_accumulation_steps",
                      what_fits(ranks, each, effective_batch));
  }
  config.run.gradient_accumulation_steps = effective_batch / at_once;
  config.origins["gradient_accumulation_steps"] = "the checkpoint's effective batch";
  return "gradient_accumulation_steps is " + std::to_string(config.run.gradient_accumulation_steps) +
         ", which keeps the checkpoint's effective batch of " + batch;
}

}  // namespace sdtune::train
