#include "model/kernels/group_norm.h"

#include <torch/csrc/autograd/custom_function.h>

#include "model/kernels/asks_for_gradient.h"
#include "model/kernels/group_norm_cpu.h"
#include "model/kernels/group_norm_cuda.h"
#include "model/products/sizes_only.h"

namespace sdtune::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct FusedGroupNorm : torch::autograd::Function<FusedGroupNorm> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const torch::Tensor& bias, const std::optional<torch::Tensor>& offset,
                               const GroupNormArguments& arguments) {
    const torch::Tensor map = x.contiguous(x.suggest_memory_format());
    const torch::Tensor y = torch::empty_like(map);
    const GroupNormStatistics found = group_norm_cpu(map, y, arguments);
    context->save_for_backward({map, weight, bias, offset.value_or(torch::Tensor()), found.sum, found.mean, found.rstd,
                                found.scale, found.shift});
    context->saved_data["groups"] = arguments.groups;
    context->saved_data["eps"] = arguments.eps;
    context->saved_data["silu"] = arguments.silu;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor& x = saved[0];
    const GroupNormArguments arguments = {.weight = saved[1],
                                          .bias = saved[2],
                                          .offset = saved[3],
                                          .groups = context->saved_data["groups"].toInt(),
                                          .eps = context->saved_data["eps"].toDouble(),
                                          .silu = context->saved_data["silu"].toBool()};
    const GroupNormStatistics statistics = {saved[4], saved[5], saved[6], saved[7], saved[8]};
    const torch::Tensor dy = gradients[0].contiguous(x.suggest_memory_format());
    const torch::Tensor dx = torch::empty_like(x);
    const GroupNormGradients out = group_norm_cpu_backward(x, dy, dx, arguments, statistics);
    const auto dtype = arguments.weight.scalar_type();
    return {dx, out.weight.to(dtype), out.bias.to(dtype),
            arguments.offset.defined() ? out.offset.to(arguments.offset.scalar_type()) : torch::Tensor(),
            torch::Tensor()};
  }
};

bool has_cpu_kernel(const torch::Tensor& x) {
  return x.is_cpu() && (x.scalar_type() == torch::kFloat32 || x.scalar_type() == torch::kBFloat16);
}

// The sizes that kernels read their arguments in. LibTorch's operators spread an offset of other ones, or refuse it.
bool have_usual_sizes(const torch::Tensor& x, const GroupNormArguments& arguments) {
  const torch::Tensor& offset = arguments.offset;
  return x.dim() == 4 && arguments.groups > 0 && x.size(1) % arguments.groups == 0 &&
         arguments.weight.numel() == x.size(1) && arguments.bias.numel() == x.size(1) &&
         (!offset.defined() || (offset.dim() == 2 && offset.size(0) == x.size(0) && offset.size(1) == x.size(1)));
}

}  // namespace

torch::Tensor group_norm(const torch::Tensor& x, const GroupNormArguments& arguments) {
  if (!have_usual_sizes(x, arguments)) return group_norm_by_library(x, arguments);
  if (const CudaTable* kernels = group_norm_kernels(x, arguments)) {
    return group_norm_by_kernel(*kernels, x, arguments);
  }
  if (!has_cpu_kernel(x)) return group_norm_by_library(x, arguments);
  const std::optional<torch::Tensor> offset =
      arguments.offset.defined() ? std::optional(arguments.offset) : std::nullopt;
  return FusedGroupNorm::apply(x, arguments.weight, arguments.bias, offset, arguments);
}

torch::Tensor group_norm_over(torch::Tensor x, const GroupNormArguments& arguments) {
  const bool writes_over = has_cpu_kernel(x) && have_usual_sizes(x, arguments) &&
                           x.is_contiguous(x.suggest_memory_format()) && !is_of_sizes_only() &&
                           !asks_for_gradient({x, arguments.weight, arguments.bias, arguments.offset});
  if (!writes_over) return group_norm(x, arguments);
  group_norm_cpu(x, x, arguments);
  return x;
}

}  // namespace sdtune::model
