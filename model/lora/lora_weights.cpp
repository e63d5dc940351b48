#include "model/lora/lora_weights.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "model/base/error.h"
#include "model/weights/tensor_text.h"

namespace sdtune::model {
namespace {

std::map<std::string, LowRankLayer*> layers_by_path(const ModelBundle& bundle) {
  std::map<std::string, LowRankLayer*> layers;
  for (const LoraLayer& entry : lora_layers(bundle)) layers[entry.path] = entry.layer;
  return layers;
}

// All that keeps the weights from being attached, one line a kind.
std::vector<Problem> misfits(const std::map<std::string, LowRankLayer*>& layers, const std::string& name,
                             const LoraWeights& weights) {
  std::vector<Problem> problems;
  std::vector<std::string> unknown;
  for (const auto& [path, matrices] : weights) {
    const auto found = layers.find(path);
    if (found == layers.end()) {
      unknown.push_back(path);
      continue;
    }
    if (matrices.delta.defined()) continue;  // shaped after its layer
    const std::vector<int64_t> down = found->second->down_shape(matrices.rank());
    const std::vector<int64_t> up = found->second->up_shape(matrices.rank());
    if (matrices.down.sizes() == down && matrices.up.sizes() == up) continue;
    problems.push_back({name,
                        path + " has the wrong shape (got " + shape_text(matrices.down.sizes()) + " and " +
                            shape_text(matrices.up.sizes()) + "; needed: " + shape_text(down) + " and " +
                            shape_text(up) + ")",
                        "it was trained on another model"});
  }
  if (weights.empty()) problems.push_back({name, "holds no low-rank layer", ""});
  if (!unknown.empty()) {
    problems.push_back({name,
                        std::to_string(unknown.size()) + " of " + std::to_string(weights.size()) +
                            " layers are not in the model, the first is " + unknown.front(),
                        "it was trained on another model"});
  }
  return problems;
}

std::int64_t remove_branches(LowRankLayer& layer, const std::string& name) {
  return std::erase_if(layer.branches, [&](const LowRankBranch& branch) { return branch.lora == name; });
}

void add_to_weight(const LowRankLayer& layer, const LowRankBranch& branch, double sign) {
  const torch::NoGradGuard no_grad;
  torch::Tensor weight = layer.layer_weight();
  weight.copy_(weight.to(torch::kFloat32) + sign * branch.scale * LowRankLayer::product(branch).to(weight.device()));
}

}  // namespace

void check_lora(const ModelBundle& bundle, const std::string& name, const LoraWeights& weights) {
  const std::vector<Problem> problems = misfits(layers_by_path(bundle), name, weights);
  if (!problems.empty()) throw WeightError(problems);
}

void attach_lora(const ModelBundle& bundle, const std::string& name, const LoraWeights& weights, double weight) {
  check_lora(bundle, name, weights);
  const std::map<std::string, LowRankLayer*> layers = layers_by_path(bundle);
  for (const auto& [path, matrices] : weights) {
    LowRankLayer& layer = *layers.at(path);
    remove_branches(layer, name);
    const torch::TensorOptions options = layer.layer_weight().options();
    const auto placed = [&](const torch::Tensor& tensor) { return tensor.defined() ? tensor.to(options) : tensor; };
    layer.branches.push_back({.lora = name,
                              .down = placed(matrices.down),
                              .up = placed(matrices.up),
                              .delta = placed(matrices.delta),
                              .scale = weight * matrices.scale()});
  }
}

std::int64_t detach_lora(const ModelBundle& bundle, const std::string& name) {
  std::int64_t removed = 0;
  for (const LoraLayer& entry : lora_layers(bundle)) removed += remove_branches(*entry.layer, name);
  return removed;
}

std::vector<FusedBranch> fuse_loras(const ModelBundle& bundle) {
  std::vector<FusedBranch> fused;
  for (const LoraLayer& entry : lora_layers(bundle)) {
    for (LowRankBranch& branch : entry.layer->branches) {
      add_to_weight(*entry.layer, branch, 1);
      fused.push_back({entry.layer, std::move(branch)});
    }
    entry.layer->branches.clear();
  }
  return fused;
}

void unfuse_loras(const std::vector<FusedBranch>& fused) {
  for (const FusedBranch& entry : fused) {
    add_to_weight(*entry.layer, entry.branch, -1);
    entry.layer->branches.push_back(entry.branch);
  }
}

}  // namespace sdtune::model
