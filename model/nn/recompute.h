// Activation recomputation (Chen et al., "Training deep nets with sublinear memory cost", 2016).
#pragma once

#include <torch/types.h>

#include <functional>
#include <vector>

namespace sdtune::model {

using RecomputedFunction = std::function<torch::Tensor(const std::vector<torch::Tensor>&)>;

// function(inputs), keeping only `inputs` for backward, where the function runs a second time. Gradients of parameters
// that the function closes over are accumulated into their .grad inside that inner backward, so hooks fire there, and
// torch::autograd::grad() of such parameters does not see them: call backward(). Every input is defined, and the
// function is pure: no random numbers, no side effects.
torch::Tensor recompute(const RecomputedFunction& function, const std::vector<torch::Tensor>& inputs);

}  // namespace sdtune::model
