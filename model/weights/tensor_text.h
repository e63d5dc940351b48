// Tensors of files in the words of errors.
#pragma once

#include <torch/types.h>

#include <string>

namespace sdtune::model {

// "[320, 4, 3, 3]".
std::string shape_text(torch::IntArrayRef shape);

// Throws WeightError naming `where` and the tensor unless it is of a floating dtype, as every weight is.
void require_floating(const torch::Tensor& tensor, const std::string& where, const std::string& name);

}  // namespace sdtune::model
