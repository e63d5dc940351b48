// The image file that image to image begins with.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "model/pipeline/bundle.h"

namespace sdtune::model {

// The file and the size that is asked for, px.
struct InitImageFile {
  std::filesystem::path file;
  std::optional<std::int64_t> width;
  std::optional<std::int64_t> height;

  bool operator==(const InitImageFile&) const = default;
};

// [1, 3, H, W] in [-1, 1]. Where only one of width and height is given the other follows from the image's proportions;
// where both are not, the image is scaled down to the model's number of pixels, or keeps its size; to whole latent
// cells in each case (Lanczos). Throws DataError naming the file that cannot be read.
torch::Tensor read_init_image(const InitImageFile& wanted, const ModelBundle& bundle);

}  // namespace sdtune::model
