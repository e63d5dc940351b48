// What was written, read again: the last step of every export.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "model/weights/key_map.h"
#include "model/weights/tensor_source.h"

namespace sdtune::model {

// Dtype, shape and every byte, so that a NaN equals itself. Both on the CPU.
bool same_bits(const torch::Tensor& one, const torch::Tensor& other);

// Throws StorageError naming the source and the tensor unless it holds every parameter of the module, cast to `dtype`,
// bit by bit, and nothing else.
void check_stored_weights(const torch::nn::Module& module, const TensorSource& source, KeyFamily family,
                          torch::Dtype dtype);

}  // namespace sdtune::model
