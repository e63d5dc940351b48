// The float32 values that an optimizer's masters start from.
#pragma once

#include <torch/types.h>

#include <vector>

#include "train/parameters/trainable_parameters.h"

namespace sdtune::train {

// Of each parameter, in their order; the shapes are theirs. A parameter that is in float32 gives its own values. One
// that was loaded in half precision gives those of the base's files, which are read again in float32 on the CPU:
// `bundle` is what `trained` belongs to, with the folder that it was read from.
std::vector<torch::Tensor> starting_values(const model::ModelBundle& bundle,
                                           const std::vector<ModuleParameter>& trained);

}  // namespace sdtune::train
