// Images of base and model for the report, of the same prompt and seeds.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "model/base/stop_flag.h"
#include "model/files/file_system.h"
#include "train/config/train_config.h"
#include "train/data/photo_folder.h"

namespace sdtune::train {

struct ImageTime {
  double fixed = 0;  // in s: prompts, decoder
  double step = 0;   // of the sampler
  double of(std::int64_t steps) const { return fixed + step * static_cast<double>(steps); }
};

struct PairsThatFit {
  std::int64_t pairs = 0;
  std::int64_t steps = 0;  // of the sampler
};

inline constexpr std::int64_t kFewestSteps = 10;  // of the sampler that still show a portrait

// `left` s are left for pairs of images and for loading the model, which takes `load`. At most `wanted` pairs of
// `steps` each; where not even one of them fits, one of fewer steps, at least kFewestSteps.
PairsThatFit pairs_that_fit(PairsThatFit wanted, double left, double load, ImageTime image);

double monotonic_seconds();

// What the images are generated of: the (first) instance prompt, or where no caption of its subject says that prompt's
// words, the caption of the subject's first photo. Of words that were never trained both images would be the base's.
std::string report_prompt(const DataOptions& options, const std::vector<Photo>& photos);

struct ReportImagesPlan {
  const TrainConfig& config;  // resolved
  std::filesystem::path run;  // its folder, with the exported model in it
  torch::Device device;
  torch::Dtype dtype;
  double limit_seconds = 0;  // that all of it may take
  double (*clock)() = &monotonic_seconds;
  std::string prompt = {};  // as report_prompt says it; empty: the (first) instance prompt
};

// Loads the base and the exported model, one after the other, generates observe.report_images of each, or what
// fits, and writes them as the report expects them (train/observe/page_images.h). Returns how many pairs there are.
// 0 where validation images already show both, or none fits. Whatever is thrown, the run is done.
std::int64_t write_report_images(FileSystem& files, const ReportImagesPlan& plan, const StopFlag& stop);

}  // namespace sdtune::train
