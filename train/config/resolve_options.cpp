#include "train/config/resolve_options.h"

#include "model/base/error.h"
#include "train/config/run_folder.h"

namespace sdtune::train {

void resolve_options(TrainConfig& config, std::int64_t base_resolution) {
  const RunFolder folder = run_folder(config);
  if (!config.data.resolution) {
    config.data.resolution = base_resolution;
    config.origins["resolution"] = "the base";
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
