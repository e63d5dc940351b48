#include "train/profile/operator_flops.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sdtune::train {
namespace {

using Arguments = c10::ArrayRef<const c10::IValue>;

bool is_tensor(Arguments arguments, std::size_t index) {
  return index < arguments.size() && arguments[index].isTensor() && arguments[index].toTensor().defined();
}

double numel(Arguments arguments, std::size_t index) {
  return static_cast<double>(arguments[index].toTensor().numel());
}

// [.., m, k] x [.., k, n]
double product(Arguments arguments, std::size_t left, std::size_t right) {
  if (!is_tensor(arguments, left) || !is_tensor(arguments, right)) return 0;
  return 2.0 * numel(arguments, left) * static_cast<double>(arguments[right].toTensor().size(-1));
}

// Arguments (input, weight, bias, stride, padding, dilation, ..); one number for both directions stands alone.
double convolution(Arguments arguments) {
  if (!is_tensor(arguments, 0) || !is_tensor(arguments, 1) || arguments.size() < 5) return 0;
  const at::Tensor& input = arguments[0].toTensor();
  const at::Tensor& weight = arguments[1].toTensor();
  if (input.dim() != 4 || !arguments[3].isIntList() || !arguments[4].isIntList()) return 0;
  const std::vector<std::int64_t> stride = arguments[3].toIntVector(), padding = arguments[4].toIntVector();
  if (stride.empty() || padding.empty()) return 0;
  double pixels = static_cast<double>(input.size(0));
  for (std::size_t i = 0; i < 2; ++i) {
    const auto dim = static_cast<std::int64_t>(i) + 2;
    const std::int64_t by = stride[std::min(i, stride.size() - 1)], around = padding[std::min(i, padding.size() - 1)];
    const std::int64_t steps = (input.size(dim) + 2 * around - weight.size(dim)) / by;
    pixels *= static_cast<double>(steps + 1);
  }
  return 2.0 * pixels * static_cast<double>(weight.numel());
}

// Arguments (dy, input, weight, bias sizes, stride, padding, .., output mask): the gradients of input and weight, as
// far as they are asked for. A weight beneath a LoRA is not.
double convolution_backward(Arguments arguments) {
  if (!is_tensor(arguments, 0) || !is_tensor(arguments, 2)) return 0;
  const at::Tensor& gradient = arguments[0].toTensor();
  if (gradient.dim() != 4) return 0;
  const double pixels = numel(arguments, 0) / static_cast<double>(gradient.size(1));
  constexpr std::size_t kOutputMask = 10;
  double wanted = 2;
  if (arguments.size() > kOutputMask && arguments[kOutputMask].isBoolList()) {
    const c10::List<bool> mask = arguments[kOutputMask].toBoolList();
    wanted = (mask.get(0) ? 1 : 0) + (mask.get(1) ? 1 : 0);
  }
  return wanted * 2.0 * pixels * static_cast<double>(arguments[2].toTensor().numel());
}

// Arguments (dy [pixels, channels] or [B, channels, H, W], weight, whether the gradient of input and of weight is asked
// for).
double own_convolution_backward(Arguments arguments) {
  if (!is_tensor(arguments, 0) || !is_tensor(arguments, 1) || arguments.size() < 4) return 0;
  const double wanted = (arguments[2].toBool() ? 1 : 0) + (arguments[3].toBool() ? 1 : 0);
  return wanted * 2.0 * numel(arguments, 0) / static_cast<double>(arguments[0].toTensor().size(1)) *
         numel(arguments, 1);
}

// Products of attention, each of q [B, H, N, d] with k [B, H, M, d] or as large: of the forward pass scores, and values
// weighted by them; of the backward pass scores once more, and the gradients of softmax, q, k and v (as
// torch.utils.flop_counter counts them).
constexpr double kForwardProducts = 2, kBackwardProducts = 5;

// Rows N and M lie at `rows`. Where M is N it is self-attention of pixels, or, with later keys hidden, of a text, whose
// length is always the same.
OperatorFlops attention(Arguments arguments, std::size_t query, std::size_t causal, double products,
                        int64_t rows = -2) {
  if (!is_tensor(arguments, query) || !is_tensor(arguments, query + 1)) return {};
  const at::Tensor &q = arguments[query].toTensor(), &k = arguments[query + 1].toTensor();
  const double flops = products * 2.0 * static_cast<double>(q.numel()) * static_cast<double>(k.size(rows));
  const bool is_text = causal < arguments.size() && arguments[causal].isBool() && arguments[causal].toBool();
  return {flops, q.size(rows) == k.size(rows) && !is_text};
}

}  // namespace

OperatorFlops operator_flops(std::string_view name, Arguments arguments) {
  if (name == "aten::mm" || name == "aten::bmm") return {product(arguments, 0, 1), false};
  if (name == "sdtune::onednn_product" || name == "sdtune::small_product") return {product(arguments, 0, 1), false};
  if (name == "aten::addmm" || name == "aten::baddbmm") return {product(arguments, 1, 2), false};
  if (name == "aten::convolution" || name == "sdtune::patch_convolution" || name == "sdtune::packed_convolution" ||
      name == "sdtune::winograd_convolution") {  // as many as without its transforms
    return {convolution(arguments), false};
  }
  if (name == "sdtune::patch_convolution_backward" || name == "sdtune::winograd_convolution_backward") {
    return {own_convolution_backward(arguments), false};
  }
  if (name == "aten::convolution_backward") return {convolution_backward(arguments), false};
  if (name == "aten::_scaled_dot_product_flash_attention_for_cpu") return attention(arguments, 0, 4, kForwardProducts);
  if (name == "aten::_scaled_dot_product_flash_attention_for_cpu_backward")
    return attention(arguments, 1, 7, kBackwardProducts);
  if (name == "sdtune::attention") return attention(arguments, 0, 3, kForwardProducts, 1);  // [B, N, H, d]
  if (name == "sdtune::attention_backward") return attention(arguments, 0, 3, kBackwardProducts, 1);
  return {};
}

}  // namespace sdtune::train
