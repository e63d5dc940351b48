#include "train/plan/sizes_only.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/copy_ops.h>
#include <torch/library.h>

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

namespace sdtune::train {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// Below autograd and above every device's kernels. LibTorch keeps it for programs that do what this one does, and uses
// it for nothing itself.
constexpr auto kSizesOnly = c10::DispatchKey::Fake;

// Sums and copies of fewer numbers are computed: they cost nothing, and some are read as values.
constexpr std::int64_t kLarge = std::int64_t{1} << 14;

Tensor product(const Tensor& a, const Tensor& b) {
  return at::empty({a.size(0), b.size(1)}, a.options());
}

Tensor product_added(const Tensor& /*added*/, const Tensor& a, const Tensor& b, const at::Scalar& /*beta*/,
                     const at::Scalar& /*alpha*/) {
  return product(a, b);
}

Tensor products(const Tensor& a, const Tensor& b) {
  return at::empty({a.size(0), a.size(1), b.size(2)}, a.options());
}

Tensor products_added(const Tensor& /*added*/, const Tensor& a, const Tensor& b, const at::Scalar& /*beta*/,
                      const at::Scalar& /*alpha*/) {
  return products(a, b);
}

bool is_channels_last(const Tensor& x) {
  return x.dim() == 4 && x.suggest_memory_format() == at::MemoryFormat::ChannelsLast;
}

at::MemoryFormat format_of(const Tensor& x, const Tensor& weight) {
  return is_channels_last(x) || is_channels_last(weight) ? at::MemoryFormat::ChannelsLast
                                                         : at::MemoryFormat::Contiguous;
}

// One number for both directions stands alone.
std::vector<std::int64_t> of_both(at::IntArrayRef numbers) {
  return {numbers.front(), numbers.back()};
}

Tensor convolve(const Tensor& x, const Tensor& weight, const OptionalTensor& /*bias*/, at::IntArrayRef stride,
                at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef /*output_padding*/,
                std::int64_t /*groups*/) {
  TORCH_CHECK(x.dim() == 4 && !transposed, "sizes only: a convolution of maps is expected");
  const auto sizes =
      at::native::conv_output_size(x.sizes(), weight.sizes(), of_both(padding), of_both(stride), of_both(dilation));
  return at::empty(sizes, x.options(), format_of(x, weight));
}

std::tuple<Tensor, Tensor, Tensor> convolve_backward(const Tensor& /*dy*/, const Tensor& x, const Tensor& weight,
                                                     at::OptionalIntArrayRef bias_sizes, at::IntArrayRef /*stride*/,
                                                     at::IntArrayRef /*padding*/, at::IntArrayRef /*dilation*/,
                                                     bool /*transposed*/, at::IntArrayRef /*output_padding*/,
                                                     std::int64_t /*groups*/, std::array<bool, 3> wanted) {
  const at::MemoryFormat format = format_of(x, weight);
  std::tuple<Tensor, Tensor, Tensor> gradients;
  if (wanted[0]) std::get<0>(gradients) = at::empty(x.sizes(), x.options(), format);
  if (wanted[1]) std::get<1>(gradients) = at::empty(weight.sizes(), weight.options(), format);
  if (wanted[2] && bias_sizes) std::get<2>(gradients) = at::empty(*bias_sizes, weight.options());
  return gradients;
}

std::tuple<Tensor, Tensor> attention(const Tensor& q, const Tensor& /*k*/, const Tensor& /*v*/, double /*dropout*/,
                                     bool /*is_causal*/, const OptionalTensor& /*mask*/,
                                     std::optional<double> /*scale*/) {
  const auto sums = q.options().dtype(at::toOpMathType(q.scalar_type()));  // a number a row of the scores
  return {at::empty_like(q), at::empty({q.size(0), q.size(2), q.size(1)}, sums).transpose(1, 2)};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& /*dy*/, const Tensor& q, const Tensor& k,
                                                      const Tensor& v, const Tensor& /*out*/, const Tensor& /*sums*/,
                                                      double /*dropout*/, bool /*is_causal*/,
                                                      const OptionalTensor& /*mask*/, std::optional<double> /*scale*/) {
  return {at::empty_like(q), at::empty_like(k), at::empty_like(v)};
}

constexpr auto kBelow = c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kSizesOnly);

bool is_large(const Tensor& x) {
  return x.is_floating_point() && x.numel() >= kLarge;
}

Tensor& copy_small(c10::DispatchKeySet keys, Tensor& to, const Tensor& from, bool non_blocking) {
  return is_large(to) ? to : at::_ops::copy_::redispatch(keys & kBelow, to, from, non_blocking);
}

Tensor add_small(c10::DispatchKeySet keys, const Tensor& a, const Tensor& b, const at::Scalar& alpha) {
  const bool is_alike = a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type();
  return is_large(a) && is_alike ? at::empty_like(a) : at::_ops::add_Tensor::redispatch(keys & kBelow, a, b, alpha);
}

Tensor& add_small_in_place(c10::DispatchKeySet keys, Tensor& to, const Tensor& from, const at::Scalar& alpha) {
  return is_large(to) ? to : at::_ops::add__Tensor::redispatch(keys & kBelow, to, from, alpha);
}

// Registered when the first scope is made, and kept: without the key in a thread's set nothing of it is called.
void register_operators() {
  static auto* const others = new torch::Library(torch::Library::IMPL, "_", kSizesOnly, __FILE__, __LINE__);
  static auto* const operators = new torch::Library(torch::Library::IMPL, "aten", kSizesOnly, __FILE__, __LINE__);
  static const bool is_registered = [] {
    others->fallback(torch::CppFunction::makeFallthrough());
    operators->impl("mm", TORCH_FN(product));
    operators->impl("addmm", TORCH_FN(product_added));
    operators->impl("bmm", TORCH_FN(products));
    operators->impl("baddbmm", TORCH_FN(products_added));
    operators->impl("convolution", TORCH_FN(convolve));
    operators->impl("convolution_backward", TORCH_FN(convolve_backward));
    operators->impl("_scaled_dot_product_flash_attention_for_cpu", TORCH_FN(attention));
    operators->impl("_scaled_dot_product_flash_attention_for_cpu_backward", TORCH_FN(attention_backward));
    operators->impl("copy_", TORCH_FN(copy_small));
    operators->impl("add.Tensor", TORCH_FN(add_small));
    operators->impl("add_.Tensor", TORCH_FN(add_small_in_place));
    return true;
  }();
  static_cast<void>(is_registered);
}

c10::DispatchKey registered_key() {
  register_operators();
  return kSizesOnly;
}

}  // namespace

SizesOnlyScope::SizesOnlyScope() : included_(registered_key()) {}

}  // namespace sdtune::train
