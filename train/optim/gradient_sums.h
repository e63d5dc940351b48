// The parts that the norm of the whole gradient is made of, where ranks hold gradients of different parameters.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace sdtune::train {

struct GradientSums {
  torch::Tensor parts;                // [parts] float64: sums of squares in a fixed order; the same on every rank
  std::vector<std::size_t> of_parts;  // the parameter of each, among all
};

}  // namespace sdtune::train
