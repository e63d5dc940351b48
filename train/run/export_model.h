// The result of a run.
#pragma once

#include <torch/types.h>

#include <vector>

#include "model/files/file_system.h"
#include "train/run/run.h"

namespace sdtune::train {

// What the run has learnt so far, float32: the masters of the optimizer's parameters, or their averages.
std::vector<torch::Tensor> result_weights(const Run& run);

// Writes model/ as a diffusers folder in float32, of these weights: one a parameter of the optimizer, in its order.
// Afterwards the modules hold float32. sdtune.json beside it names the words that call the subject.
void export_model(FileSystem& files, Run& run, const std::vector<torch::Tensor>& weights);

}  // namespace sdtune::train
