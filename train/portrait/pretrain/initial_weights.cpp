#include "train/portrait/pretrain/initial_weights.h"

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <string>
#include <string_view>

#include "model/core/random.h"

namespace sdtune::train::pretrain {
namespace {

constexpr double kEmbeddingDeviation = 0.02;

bool is_embedding(std::string_view name) {
  return name.find("token_embedding") != std::string_view::npos ||
         name.find("position_embedding") != std::string_view::npos;
}

// conv2 of resnets, proj_out of transformers, conv_out of a whole network.
bool ends_a_branch(std::string_view name) {
  return name.find(".conv2.") != std::string_view::npos || name.find(".proj_out.") != std::string_view::npos ||
         name.find("conv_out.") == 0;
}

// Inputs that one output of the layer sees.
std::int64_t fan_in(const torch::Tensor& weight) {
  return weight[0].numel();
}

}  // namespace

void draw_initial_weights(torch::nn::Module& module, std::uint64_t seed, std::uint64_t stream) {
  const torch::NoGradGuard no_grad;
  const auto parameters = module.named_parameters();
  std::uint64_t index = 0;
  for (const auto& item : parameters) {
    const std::string& name = item.key();
    const torch::Tensor& weight = item.value();
    const model::DrawKey key{seed, model::Draw::kWeights, stream, index++};
    const bool is_bias = name.ends_with("bias");
    const std::string sibling = is_bias ? name.substr(0, name.size() - 4) + "weight" : name;
    const torch::Tensor* layer = parameters.find(sibling);
    const bool is_norm = layer == nullptr || layer->dim() < 2;
    if (is_norm) {
      weight.fill_(is_bias ? 0.0 : 1.0);
    } else if (ends_a_branch(name)) {
      weight.zero_();
    } else {
      const double deviation =
          is_embedding(name) ? kEmbeddingDeviation : 1.0 / std::sqrt(3.0 * static_cast<double>(fan_in(*layer)));
      weight.copy_(model::draw_normal(key, weight.sizes()).mul_(deviation));
    }
  }
}

}  // namespace sdtune::train::pretrain
