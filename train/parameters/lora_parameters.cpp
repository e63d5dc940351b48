#include "train/parameters/lora_parameters.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "model/base/error.h"
#include "model/lora/lora_layers.h"

namespace sdtune::train {

namespace {

using model::LoraLayer;

// Each layer draws from a generator of its own; the constant is 2^64 / golden ratio.
std::uint64_t seed_of_layer(std::uint64_t seed, std::size_t layer) {
  return seed ^ (0x9E3779B97F4A7C15u * (static_cast<std::uint64_t>(layer) + 1));
}

// The share of a standard normal number below it is that of a uniform one.
torch::Tensor uniform_matrix(std::uint64_t seed, const std::vector<std::int64_t>& shape) {
  const torch::Tensor normal = model::draw_normal({seed, model::Draw::kWeights, 0, 0, false}, shape);
  const std::int64_t inputs = normal.numel() / shape.front();
  return (at::special_ndtr(normal) * 2 - 1) / std::sqrt(static_cast<double>(inputs));
}

// Drops by the samples' keys, so that ranks and micro-batches change nothing; a number is kept when a normal draw lies
// above the quantile of `share`.
std::function<torch::Tensor(const torch::Tensor&)> make_dropout(double share, std::size_t layer,
                                                                const std::shared_ptr<const DropoutSamples>& samples) {
  if (share <= 0) return {};
  const double quantile = at::special_ndtri(torch::scalar_tensor(share, torch::kFloat64)).item<double>();
  return [=](const torch::Tensor& x) {
    const std::vector<model::SampleKey>& keys = samples->keys();
    if (keys.empty()) return x;
    const torch::Tensor normal = model::draw_normal_batch(
        seed_of_layer(samples->seed, layer), model::Draw::kLoraDropout, keys, x.sizes().slice(1), x.device());
    return x * (normal > quantile).to(x.scalar_type()) / (1 - share);
  };
}

}  // namespace

std::vector<LoraLayer> selected_lora_layers(const model::ModelBundle& bundle, const LoraOptions& options,
                                            bool train_text_encoder) {
  std::vector<LoraLayer> selected;
  std::vector<bool> used(options.lora_layers.size(), false);
  const std::vector<std::string> unused = unused_parameters(bundle);
  for (const LoraLayer& entry : model::lora_layers(bundle)) {
    const bool is_unused = std::any_of(unused.begin(), unused.end(),
                                       [&](const std::string& start) { return entry.path.starts_with(start); });
    const bool is_trained = !is_unused && (train_text_encoder || entry.path.starts_with("unet."));
    bool is_selected = false;
    for (std::size_t i = 0; i < options.lora_layers.size(); ++i) {
      if (!model::selects_layer(options.lora_layers[i], entry.path)) continue;
      used[i] = is_selected = true;
    }
    if (is_trained && is_selected) selected.push_back(entry);
  }
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    problems.push_back({"lora_layers", "no layer of the base is called " + options.lora_layers[i],
                        "for example to_q, to_k, to_v, to_out.0"});
  }
  if (selected.empty() && problems.empty()) problems.push_back({"lora_layers", "selects nothing that is trained", ""});
  if (!problems.empty()) throw ConfigError(problems);
  return selected;
}

std::vector<ModuleParameter> add_lora(const model::ModelBundle& bundle, const LoraOptions& options,
                                      bool train_text_encoder, std::uint64_t seed,
                                      const std::shared_ptr<const DropoutSamples>& samples) {
  std::vector<ModuleParameter> parameters;
  const std::vector<LoraLayer> layers = selected_lora_layers(bundle, options, train_text_encoder);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LoraLayer& entry = layers[i];
    const torch::Device device = entry.layer->layer_weight().device();
    model::LowRankBranch branch{.lora = kTrainedLora,
                                .down = uniform_matrix(seed_of_layer(seed, i), entry.layer->down_shape(options.rank)),
                                .up = torch::zeros(entry.layer->up_shape(options.rank)),
                                .scale = options.alpha() / static_cast<double>(options.rank)};
    branch.down = branch.down.to(device);
    branch.up = branch.up.to(device);
    branch.dropout = make_dropout(options.lora_dropout, i, samples);
    const std::int64_t group = entry.path.starts_with("unet.") ? kUnetGroup : kTextGroup;
    parameters.push_back({entry.path + ".lora_A.weight", branch.down, group});
    parameters.push_back({entry.path + ".lora_B.weight", branch.up, group});
    entry.layer->branches.push_back(std::move(branch));
  }
  return parameters;
}

}  // namespace sdtune::train
