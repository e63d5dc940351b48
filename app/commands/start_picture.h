// The picture that --init-image begins with.
#pragma once

#include <torch/types.h>

#include "app/commands/sample_options.h"
#include "model/pipeline/bundle.h"

namespace sdtune::app {

// [1, 3, H, W] in [-1, 1]. The size is --width x --height; where one of them is not given it follows from the picture's
// proportions, where both are not, the picture is brought down to the model's number of pixels, or keeps its size; to
// whole latent cells in each case (Lanczos). Throws DataError naming the file that cannot be read.
torch::Tensor read_start_picture(const SampleOptions& options, const model::ModelBundle& bundle);

}  // namespace sdtune::app
