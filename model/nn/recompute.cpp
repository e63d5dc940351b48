#include "model/nn/recompute.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <utility>

namespace sdtune::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Carries the function through the context, which holds tensors and IValues only.
struct HeldFunction : torch::CustomClassHolder {
  explicit HeldFunction(RecomputedFunction held) : function(std::move(held)) {}
  RecomputedFunction function;
};

struct Recompute : torch::autograd::Function<Recompute> {
  // `anchor` is a scalar that requires a gradient: with it the node is in the graph even when no input requires one, as
  // when only parameters inside are trained.
  static torch::Tensor forward(AutogradContext* context, const RecomputedFunction& function, torch::TensorList inputs,
                               const torch::Tensor& /*anchor*/) {
    context->save_for_backward(inputs.vec());
    context->saved_data["function"] = c10::IValue::make_capsule(c10::make_intrusive<HeldFunction>(function));
    return function(inputs.vec());
  }

  static variable_list backward(AutogradContext* context, const variable_list& output_gradients) {
    const auto held = c10::static_intrusive_pointer_cast<HeldFunction>(context->saved_data["function"].toCapsule());
    variable_list inputs;
    for (const torch::Tensor& saved : context->get_saved_variables()) {
      inputs.push_back(saved.detach().set_requires_grad(saved.requires_grad()));
    }
    {
      const torch::AutoGradMode with_grad(true);
      const torch::Tensor output = held->function(inputs);
      // Nothing in it may be trained: a block without LoRA's branches before any that has them.
      if (output.requires_grad()) torch::autograd::backward({output}, {output_gradients[0]});
    }
    variable_list gradients = {torch::Tensor()};  // none for the function
    for (const torch::Tensor& input : inputs) {
      gradients.push_back(input.grad());
    }
    gradients.emplace_back();  // none for the anchor
    return gradients;
  }
};

}  // namespace

torch::Tensor recompute(const RecomputedFunction& function, const std::vector<torch::Tensor>& inputs) {
  if (!torch::GradMode::is_enabled()) return function(inputs);
  const torch::Tensor anchor = torch::zeros({1}, torch::requires_grad());
  return Recompute::apply(function, torch::TensorList(inputs), anchor);
}

}  // namespace sdtune::model
