// The activations that config files name.
#pragma once

#include <torch/types.h>

#include <optional>
#include <string>

namespace sdtune::model {

enum class Activation { kSilu, kGelu, kQuickGelu, kRelu, kMish };

// "silu", "swish", "gelu", "quick_gelu", "relu", "mish"; nothing for any other name.
std::optional<Activation> activation_named(const std::string& name);

// The first name that activation_named() takes for it.
std::string activation_name(Activation activation);

// Element by element; the result has the input's dtype and layout.
torch::Tensor activate(const torch::Tensor& x, Activation activation);

}  // namespace sdtune::model
