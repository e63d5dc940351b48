// Drawn pictures as files that say how they were drawn.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "app/commands/sample_options.h"
#include "model/base/image.h"

namespace sdtune::app {

// What is known of a picture besides the options.
struct Drawing {
  torch::Tensor pixels;  // [3, H, W] in [0, 1]
  std::int64_t seed = 0;
  std::string scheduler_class;  // diffusers'
  std::filesystem::path model;  // the folder it was drawn with
};

// [3, H, W] in [0, 1] -> 8 bits, rounded as diffusers' numpy_to_pil does.
Image to_image(const torch::Tensor& picture);

// `wanted`, or when that is taken NAME-2.EXTENSION and so on: no picture is ever overwritten.
std::filesystem::path free_path(const std::filesystem::path& wanted);

// What a model's folder is called; a finished run's name, which says more than its "model" folder.
std::string model_name(const std::filesystem::path& folder);

// How a picture was drawn, as the text chunk `parameters` that AUTOMATIC1111's web interface writes and many programs
// read: the prompt, "Negative prompt: ..." where there is one, and "Steps: 30, Sampler: ..., ..." on the last line.
std::string parameters_text(const SampleOptions& options, const Drawing& drawing);

// Writes OUTPUT/<words of the prompt>_<seed>.png or a free name beside it. Makes the folder. Returns the path. Throws
// StorageError.
std::filesystem::path write_picture(const SampleOptions& options, const Drawing& drawing);

}  // namespace sdtune::app
