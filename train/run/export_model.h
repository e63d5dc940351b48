// The result of a run.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "model/files/file_system.h"
#include "train/run/run.h"

namespace sdtune::train {

// What the run has learnt so far, float32: the masters of the trained parameters, or their averages. Every rank calls
// it; where they are shared out, the first rank gets all and the others nothing.
std::vector<torch::Tensor> result_weights(const Run& run);

// Writes model/ as a diffusers folder in float32, of these weights: one of each of run.shards->parameters(), in that
// order. Afterwards the modules hold float32. sdtune.json beside it names the words that call the subject. `step`: that
// the weights are of.
void export_model(FileSystem& files, Run& run, const std::vector<torch::Tensor>& weights, std::int64_t step);

}  // namespace sdtune::train
