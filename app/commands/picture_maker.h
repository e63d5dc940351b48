// A loaded model, ready to draw what the options of `sample` ask for.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "app/commands/lora_argument.h"
#include "app/commands/sample_options.h"
#include "model/pipeline/bundle.h"
#include "model/pipeline/text_to_image.h"

namespace sdtune::app {

class PictureMaker {
 public:
  // Loads the diffusers folder, with what of the options belongs to the model. Throws what load_model throws.
  PictureMaker(const std::filesystem::path& folder, const SampleOptions& options, const torch::Device& device,
               torch::Dtype dtype);

  const std::filesystem::path& folder() const { return folder_; }
  // diffusers' name of the sampler that the options ask for.
  std::string scheduler_class(const SampleOptions& options) const;
  // How many tokens of the prompt the encoder will not see.
  std::int64_t count_cut_tokens(const SampleOptions& options) const;

  // The size that draw() gives. Throws what reading --init-image throws.
  struct Size {
    std::int64_t width;   // px
    std::int64_t height;  // px
  };
  Size picture_size(const SampleOptions& options) const;

  // Pictures first ... first + count - 1 of the prompt, [count, 3, H, W] in [0, 1]; picture i has seed + i. Undefined
  // when a stop was asked for meanwhile. Throws ConfigError for what the model cannot do.
  torch::Tensor draw(const SampleOptions& options, std::int64_t first, std::int64_t count,
                     std::function<void(const model::SampleProgress&)> on_step);

 private:
  void use_loras(const std::vector<std::string>& texts);
  model::SampleRequest request_of(const SampleOptions& options) const;

  std::filesystem::path folder_;
  model::ModelBundle bundle_;
  std::vector<std::string> lora_texts_;  // FILE:WEIGHT of those that hang on it
  std::vector<LoraArgument> loras_;      // the same
};

}  // namespace sdtune::app
