#include "model/nn/activation.h"

#include <array>
#include <utility>

namespace sdtune::model {
namespace {

constexpr std::array<std::pair<const char*, Activation>, 6> kNames = {{{"silu", Activation::kSilu},
                                                                       {"swish", Activation::kSilu},
                                                                       {"gelu", Activation::kGelu},
                                                                       {"quick_gelu", Activation::kQuickGelu},
                                                                       {"relu", Activation::kRelu},
                                                                       {"mish", Activation::kMish}}};

}  // namespace

std::optional<Activation> activation_named(const std::string& name) {
  for (const auto& [known, activation] : kNames) {
    if (name == known) return activation;
  }
  return std::nullopt;
}

std::string activation_name(Activation activation) {
  for (const auto& [known, candidate] : kNames) {
    if (activation == candidate) return known;
  }
  TORCH_INTERNAL_ASSERT(false, "an activation without a name");
}

torch::Tensor activate(const torch::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return torch::silu(x);
    case Activation::kGelu:
      return torch::gelu(x);
    case Activation::kQuickGelu:
      return x *
             torch::sigmoid(x * 1.702);  // Hendrycks and Gimpel (2016), the cheap form OpenAI's CLIP was trained with
    case Activation::kRelu:
      return torch::relu(x);
    case Activation::kMish:
      return torch::mish(x);
  }
  TORCH_INTERNAL_ASSERT(false, "an activation that is not computed");
}

}  // namespace sdtune::model
