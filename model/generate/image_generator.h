// From options to images with one loaded model: the one way of the command line, Python's pipelines, class images,
// validation images and evaluations.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/generate/generate_options.h"
#include "model/generate/init_image.h"
#include "model/pipeline/bundle.h"
#include "model/pipeline/text_to_image.h"

namespace sdtune::model {

// How the options' texts are read and encoded.
PromptRules prompt_rules(const GenerateOptions& options);

class ImageGenerator {
 public:
  // The bundle must outlive the generator.
  explicit ImageGenerator(ModelBundle& bundle) : bundle_(bundle) {}

  // The options with what they leave to the model filled in, as metadata state it: guidance_scale.
  GenerateOptions resolved(GenerateOptions options) const;
  // The sizes that generate() gives. Throws as make_request, and ConfigError for what is no multiple of the VAE's
  // factor.
  struct Sizes {
    PixelSize first_pass;
    PixelSize result;
  };
  Sizes sizes(const GenerateOptions& options);
  bool is_xl() const { return bundle_.is_xl(); }
  // diffusers' name of the scheduler that the options ask for.
  std::string scheduler_class(const GenerateOptions& options) const;
  // The options' sampler, or the model's own scheduler.
  std::unique_ptr<Scheduler> make_scheduler(const GenerateOptions& options) const;

  // All that the options say; prompts, seeds and arrays are the caller's to set. The init image is read once for
  // requests in a row of the same file and size. Throws ConfigError, and what reading the init image throws.
  SampleRequest make_request(const GenerateOptions& options, const Scheduler& scheduler);

  // [B, 3, H, W] in [0, 1], float32: image i of prompts[i], with seeds[i] or one generator of the only seed for all.
  // Attaches options.loras and detaches those of the call before. Undefined when callbacks.stop ended it. Throws
  // ConfigError for what the model cannot do.
  torch::Tensor generate(const GenerateOptions& options, std::vector<std::string> prompts,
                         std::vector<std::uint64_t> seeds, const SampleCallbacks& callbacks = {});

 private:
  void attach(const std::vector<WeightedLora>& loras);

  ModelBundle& bundle_;
  std::vector<WeightedLora> attached_;
  InitImageFile init_file_;   // that init_image_ was read from
  torch::Tensor init_image_;  // undefined: none yet
};

}  // namespace sdtune::model
