// Generated images as PNG files that say how they were generated.
#pragma once

#include <torch/types.h>

#include <filesystem>

#include "model/generate/a1111_parameters.h"
#include "model/generate/generate_options.h"
#include "model/generate/generation_metadata.h"

namespace sdtune::model {

// An image, and what the options do not say of it.
struct GeneratedImage {
  torch::Tensor pixels;  // [3, H, W] in [0, 1]
  ModelSampling sampling;
  ImageBatch batch;  // that it was generated in
};

// `wanted`, or when that is taken NAME-2.EXTENSION and so on: no image is ever overwritten.
std::filesystem::path free_path(const std::filesystem::path& wanted);

// Writes FOLDER/<words of the prompt>_<seed>.png or a free name beside it, with the texts `parameters`
// (a1111_parameters.h) and `sdtune` (generation_metadata.h), and the mark that it is generated unless ai_mark is off.
// `options` with the image's own prompt and seed, as ImageGenerator::resolved returns them. Makes the folder. Returns
// the path. Throws StorageError.
std::filesystem::path write_image(const std::filesystem::path& folder, const GenerateOptions& options,
                                  const ImageSources& sources, const GeneratedImage& generated);

}  // namespace sdtune::model
