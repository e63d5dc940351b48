// Images of base and model for the report, of the same prompt and seeds.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>

#include "model/base/stop_flag.h"
#include "model/files/file_system.h"
#include "train/config/train_config.h"

namespace sdtune::train {

// How many pairs fit: `left` s are left for them, an image takes `image_seconds`, and loading the model `load_seconds`
// once more; at most `wanted`.
std::int64_t pairs_that_fit(std::int64_t wanted, double left, double image_seconds, double load_seconds);

struct ReportImagesPlan {
  const TrainConfig& config;  // resolved
  std::filesystem::path run;  // its folder, with the exported model in it
  torch::Device device;
  torch::Dtype dtype;
  double limit_seconds = 0;  // that all of it may take
};

// Loads the base and the exported model, one after the other, generates observe.report_images of each, or as many as
// fit, and writes them as the report expects them (train/observe/page_images.h). Returns how many pairs there are.
// 0 where validation images already show both, or none fits. Whatever is thrown, the run is done.
std::int64_t write_report_images(FileSystem& files, const ReportImagesPlan& plan, const StopFlag& stop);

}  // namespace sdtune::train
