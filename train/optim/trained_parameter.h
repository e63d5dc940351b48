// The parameters as the optimizer sees them, and what the norm of their whole gradient is made of.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sdtune::train {

struct TrainedParameter {
  std::string name;             // component and diffusers' name: "unet.conv_in.weight"
  torch::Tensor weight;         // the module's own, in the compute dtype, dense in any memory format
  torch::Tensor gradient;       // same shape and strides, of the weight's dtype or float32; its memory may change
  torch::Tensor start;          // float32 values that the master starts from; undefined: the weight's own
  std::int64_t rate_group = 0;  // which of the learning rates: 0 UNet, 1 text encoders
};

// The parts of the norm, where ranks hold gradients of different parameters.
struct GradientSums {
  torch::Tensor parts;                // [parts]: sums of squares, or norms, in a fixed order; the same on every rank
  std::vector<std::size_t> of_parts;  // the parameter of each, among all
};

}  // namespace sdtune::train
