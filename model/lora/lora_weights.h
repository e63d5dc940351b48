// The numbers of one LoRA, apart from any model and any file layout.
#pragma once

#include <torch/types.h>

#include <map>
#include <string>
#include <vector>

#include "model/lora/lora_layers.h"

namespace sdtune::model {

// Of one layer: `down` [r, in] or [r, in, k, k] and `up` [out, r] or [out, r, 1, 1], or `delta`.
struct LoraMatrices {
  torch::Tensor down;
  torch::Tensor up;
  double alpha = 0;          // the two count alpha / r
  torch::Tensor delta = {};  // in place of the two: what is added to the weight, in full (LoHa, LoKr)

  std::int64_t rank() const { return down.size(0); }
  double scale() const { return delta.defined() ? 1.0 : alpha / static_cast<double>(rank()); }
};

// By layer path; ordered, so that files are the same each time.
using LoraWeights = std::map<std::string, LoraMatrices>;

// Throws WeightError that names `name`, and counts and names what does not fit the model: paths that it lacks, wrong
// shapes, or nothing at all.
void check_lora(const ModelBundle& bundle, const std::string& name, const LoraWeights& weights);

// Attaches the LoRA to its layers under `name`, with each branch's scale multiplied by `weight`; several LoRAs add up,
// and one of the same name is replaced. The branches get the layers' device and dtype. Throws as check_lora.
void attach_lora(const ModelBundle& bundle, const std::string& name, const LoraWeights& weights, double weight = 1.0);

// Takes the branches of that name away. Returns how many there were.
std::int64_t detach_lora(const ModelBundle& bundle, const std::string& name);

struct FusedBranch {
  LowRankLayer* layer;  // lives as long as the bundle
  LowRankBranch branch;
};

// Adds every branch to the weight of its layer, in float32, and detaches it; the model then generates the same without.
// Returns what was added, for unfuse_loras.
std::vector<FusedBranch> fuse_loras(const ModelBundle& bundle);

// Takes them out of the weights again, which is right to rounding, and attaches them again.
void unfuse_loras(const std::vector<FusedBranch>& fused);

}  // namespace sdtune::model
