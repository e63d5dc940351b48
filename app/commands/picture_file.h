// Drawn pictures as files that say how they were drawn.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <string>

#include "app/commands/picture_record.h"
#include "app/commands/sample_options.h"
#include "model/base/image.h"

namespace sdtune::app {

// A picture, and what the options do not say of it.
struct Drawing {
  torch::Tensor pixels;         // [3, H, W] in [0, 1]
  std::string scheduler_class;  // diffusers'
  DrawnBatch batch;             // that it was drawn in
};

// [3, H, W] in [0, 1] -> 8 bits, rounded as diffusers' numpy_to_pil does.
Image to_image(const torch::Tensor& picture);

// `wanted`, or when that is taken NAME-2.EXTENSION and so on: no picture is ever overwritten.
std::filesystem::path free_path(const std::filesystem::path& wanted);

// What a model's folder is called; a finished run's name, which says more than its "model" folder.
std::string model_name(const std::filesystem::path& folder);

// Writes OUTPUT/<words of the prompt>_<seed>.png or a free name beside it, with the texts `parameters` (picture_text.h)
// and `sdtune` (picture_record.h), and the mark that it is generated unless --no-ai-mark. `options` with the picture's
// own prompt and seed. Makes the folder. Returns the path. Throws StorageError.
std::filesystem::path write_picture(const SampleOptions& options, const DrawingSources& sources,
                                    const Drawing& drawing);

}  // namespace sdtune::app
