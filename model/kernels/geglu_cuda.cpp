#include "model/kernels/geglu_cuda.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/core/kernel_access.h"
#include "model/core/kernel_proof.h"

namespace sdtune::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct KernelGeglu : torch::autograd::Function<KernelGeglu> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const CudaTable* kernels) {
    const torch::Tensor rows = x.contiguous();
    context->save_for_backward({rows});
    std::vector<int64_t> shape = rows.sizes().vec();
    shape.back() /= 2;
    const torch::Tensor y = torch::empty(shape, rows.options());
    const std::int64_t width = shape.back();
    kernels->geglu_forward(rows.const_data_ptr(), y.data_ptr(), y.numel() / width, width, cuda_type(rows.scalar_type()),
                           kernel_stream(rows.device()));
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const torch::Tensor x = context->get_saved_variables()[0];
    const torch::Tensor dy = gradients[0].contiguous();
    const torch::Tensor dx = torch::empty_like(x);
    const CudaTable* kernels = kernel_table(x.device());
    TORCH_CHECK(kernels != nullptr, "geglu: its kernels went away between forward and backward");
    const std::int64_t width = dy.size(-1);
    kernels->geglu_backward(dy.const_data_ptr(), x.const_data_ptr(), dx.data_ptr(), dy.numel() / width, width,
                            cuda_type(x.scalar_type()), kernel_stream(x.device()));
    return {dx, torch::Tensor()};
  }
};

KernelDifference compare_geglu(const CudaTable& kernels, const torch::Tensor& like) {
  std::vector<ComparedTensor> compared;
  for (const std::int64_t width : {64, 37}) {  // whole packs, and none
    const torch::Tensor numbers = proof_numbers({23, 2 * width}, 1, like.device(), like.scalar_type());
    const torch::Tensor gradient = proof_numbers({23, width}, 2, like.device(), like.scalar_type());
    const torch::Tensor ours = numbers.detach().clone().set_requires_grad(true);
    const torch::Tensor theirs = numbers.to(torch::kFloat32).detach().clone().set_requires_grad(true);
    const torch::Tensor y = geglu_by_kernel(kernels, ours), expected = geglu_by_library(theirs);
    compared.push_back({"values", y, expected});
    compared.push_back({"gradient", torch::autograd::grad({y}, {ours}, {gradient})[0],
                        torch::autograd::grad({expected}, {theirs}, {gradient.to(torch::kFloat32)})[0]});
  }
  return worst_difference(compared, allowed_difference(like.scalar_type()));
}

}  // namespace

torch::Tensor geglu_by_kernel(const CudaTable& kernels, const torch::Tensor& x) {
  return KernelGeglu::apply(x, &kernels);
}

torch::Tensor geglu_by_library(const torch::Tensor& x) {
  const auto halves = x.chunk(2, -1);
  return halves[0] * torch::gelu(halves[1]);
}

const CudaTable* geglu_kernels(const torch::Tensor& x) {
  const CudaTable* kernels = kernel_table(x.device());
  const torch::ScalarType dtype = x.scalar_type();
  const bool is_known = dtype == torch::kFloat32 || dtype == torch::kBFloat16 || dtype == torch::kFloat16;
  if (kernels == nullptr || !is_known || x.numel() == 0 || x.numel() >= std::int64_t{1} << 31) return nullptr;
  return is_proven({"geglu", x.device(), dtype}, [&] { return compare_geglu(*kernels, x); }) ? kernels : nullptr;
}

}  // namespace sdtune::model
