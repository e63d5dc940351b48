#include "model/kernels/matrix_product.h"

#include <ATen/Context.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "model/core/cpu_implementation.h"
#include "model/kernels/float32_compute.h"
#include "model/products/sizes_only.h"
#include "model/products/small_product.h"

// LibTorch exports it but ships no header for it: result = beta * result + alpha * a b, of matrices or batches of them.
namespace at::native {
TORCH_API void mkldnn_matmul(const Tensor& a, const Tensor& b, const Tensor& result, float beta, float alpha);
}

namespace sdtune::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Below, making oneDNN's description of the product costs more than it gains.
constexpr int64_t kFewMultiplications = int64_t{1} << 20;
// And below this many rows, bringing the other matrix into its blocks does.
constexpr int64_t kFewRows = 32;

bool is_for_onednn(const torch::Tensor& x, int64_t out_features) {
  const int64_t products = x.numel() * out_features, rows = x.numel() / std::max<int64_t>(x.size(-1), 1);
  return x.is_cpu() && !is_of_sizes_only() && x.scalar_type() == torch::kFloat32 && products >= kFewMultiplications &&
         rows >= kFewRows && can_multiply_by_onednn() && cpu_implementation().onednn_products &&
         at::globalContext().userEnabledMkldnn();
}

// Rows of a fresh matrix as [..., n], not as a view of it, so that callers may add to it in place.
torch::Tensor shaped(const torch::Tensor& rows, at::IntArrayRef like) {
  std::vector<int64_t> sizes = like.vec();
  sizes.back() = rows.size(1);
  torch::Tensor out = torch::empty({0}, rows.options());
  return out.set_(rows.storage(), 0, sizes, c10::contiguous_strides(sizes));
}

// A matrix, or one that was transposed, as a batch of one. For a lone matrix with few rows oneDNN 3.10 takes a kernel
// that points the stack register into a buffer on the heap: a signal that comes meanwhile overwrites what lies below it
// (oneDNN issue 4845), and a run that was asked to stop dies of it. Batches never go that way.
torch::Tensor batch_of_one(const torch::Tensor& matrix) {
  const bool is_plain = matrix.is_contiguous() || matrix.t().is_contiguous();
  const torch::Tensor plain = is_plain ? matrix : matrix.contiguous();
  return plain.as_strided({1, plain.size(0), plain.size(1)}, {plain.numel(), plain.stride(0), plain.stride(1)});
}

// All its products are of the same three matrices, so that if one is small each of them is.
bool is_small_linear(const torch::Tensor& x, int64_t out_features) {
  const int64_t in = x.size(-1);
  return is_small_product(x, {x.numel() / std::max<int64_t>(in, 1), in, out_features});
}

struct OwnLinear : torch::autograd::Function<OwnLinear> {
  using Product = torch::Tensor (*)(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& bias);

  static Product product_of(bool is_small) { return is_small ? Product(small_product) : Product(onednn_product); }

  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const std::optional<torch::Tensor>& bias, bool is_small) {
    context->save_for_backward({x, weight});
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["is_small"] = is_small;
    const Product product = product_of(is_small);
    return shaped(product(as_rows(x), weight.t(), bias.value_or(torch::Tensor())), x.sizes());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1];
    const torch::Tensor dy = as_rows(gradients[0]), none;
    const Product product = product_of(context->saved_data["is_small"].toBool());
    variable_list out(4);
    if (context->needs_input_grad(0)) out[0] = shaped(product(dy, weight, none), x.sizes());
    if (context->needs_input_grad(1)) out[1] = product(dy.t(), as_rows(x), none);
    const bool has_bias = context->saved_data["has_bias"].toBool();  // without one there is no third edge to ask for
    if (has_bias && context->needs_input_grad(2)) out[2] = dy.sum(0);
    return out;
  }
};

}  // namespace

bool can_multiply_by_onednn() {
#if defined(__x86_64__)
  static const bool can = at::globalContext().hasMKLDNN() && __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0;
  return can;
#else
  return false;
#endif
}

torch::Tensor as_rows(const torch::Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}

std::optional<torch::Tensor> bias_or_none(const torch::Tensor& bias) {
  return bias.defined() ? std::optional(bias) : std::nullopt;
}

torch::Tensor apply_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  if (weight.scalar_type() != x.scalar_type()) return torch::linear(x, weight, bias);
  if (computes_in_float32(x)) return float32_linear(x, weight, bias);
  if (is_small_linear(x, weight.size(0))) return OwnLinear::apply(x, weight, bias_or_none(bias), /*is_small=*/true);
  return is_for_onednn(x, weight.size(0)) ? onednn_linear(x, weight, bias) : torch::linear(x, weight, bias);
}

torch::Tensor onednn_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  return OwnLinear::apply(x, weight, bias_or_none(bias), /*is_small=*/false);
}

torch::Tensor product(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& bias) {
  if (is_small_product(a, {a.size(0), a.size(1), b.size(1)})) return small_product(a, b, bias);
  if (is_for_onednn(a, b.size(1))) return onednn_product(a, b, bias);
  return bias.defined() ? torch::addmm(bias, a, b) : torch::mm(a, b);
}

torch::Tensor onednn_product(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& bias) {
  RECORD_FUNCTION("sdtune::onednn_product", std::vector<c10::IValue>({a, b}));
  const int64_t rows = a.size(0), columns = b.size(1);
  torch::Tensor out = torch::empty({rows, columns}, a.options().requires_grad(false));
  if (bias.defined()) out.copy_(bias.expand({rows, columns}));
  at::native::mkldnn_matmul(batch_of_one(a), batch_of_one(b), batch_of_one(out), bias.defined() ? 1.0F : 0.0F, 1.0F);
  return out;
}

void multiply_batches(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& out, bool adds) {
  RECORD_FUNCTION("sdtune::batched_product", std::vector<c10::IValue>({a, b}));
  torch::Tensor result = out;
  const bool is_avx2 = vectors_of_this_cpu() == Vectors::kAvx2;  // with AVX-512 a library's call for all is as fast
  if (can_multiply_by_onednn() && cpu_implementation().onednn_products && at::globalContext().userEnabledMkldnn()) {
    at::native::mkldnn_matmul(a, b, result, adds ? 1.0F : 0.0F, 1.0F);
  } else if (is_avx2 && cpu_implementation().small_products) {
    small_products(a, b, out, adds);
  } else if (adds) {
    result.baddbmm_(a, b);
  } else {
    torch::bmm_out(result, a, b);
  }
}

}  // namespace sdtune::model
