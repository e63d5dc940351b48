// A loaded model with what the options of `sample` ask for, ready to draw.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/commands/sample_options.h"
#include "model/pipeline/bundle.h"
#include "model/pipeline/text_to_image.h"
#include "model/schedule/scheduler.h"

namespace sdtune::app {

class PictureMaker {
 public:
  // Loads the diffusers folder. Throws what load_bundle throws, and ConfigError for a sampler that cannot be.
  PictureMaker(const std::filesystem::path& folder, const SampleOptions& options, const torch::Device& device,
               torch::Dtype dtype);

  const std::filesystem::path& folder() const { return folder_; }
  std::string scheduler_class() const { return scheduler_->class_name(); }  // diffusers'

  // Pictures first ... first + count - 1 of the prompt, [count, 3, H, W] in [0, 1]; picture i has seed + i. Undefined
  // when a stop was asked for meanwhile.
  torch::Tensor draw(const std::string& prompt, std::int64_t first, std::int64_t count,
                     std::function<void(const model::SampleProgress&)> on_step);

 private:
  std::filesystem::path folder_;
  const SampleOptions& options_;
  model::ModelBundle bundle_;
  std::unique_ptr<model::Scheduler> scheduler_;
  std::vector<std::int64_t> timesteps_;  // of every run; empty: the scheduler's own
};

}  // namespace sdtune::app
