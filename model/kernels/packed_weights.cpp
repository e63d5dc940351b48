#include "model/kernels/packed_weights.h"

#include <ATen/Context.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "model/core/tensor_memory.h"
#include "model/kernels/asks_for_gradient.h"
#include "model/kernels/float32_compute.h"
#include "model/kernels/matrix_product.h"
#include "model/kernels/winograd_conv2d.h"
#include "model/products/sizes_only.h"

namespace sdtune::model {
namespace {

thread_local PackedWeights* current = nullptr;

// The operators that torch.compile packs constant weights with; LibTorch ships no header for them.
using PackConvolution = torch::Tensor(const torch::Tensor& weight, at::IntArrayRef padding, at::IntArrayRef stride,
                                      at::IntArrayRef dilation, int64_t groups, at::OptionalIntArrayRef input_size);
using PackedConvolution = torch::Tensor(const torch::Tensor& x, const torch::Tensor& weight,
                                        const std::optional<torch::Tensor>& bias, at::IntArrayRef padding,
                                        at::IntArrayRef stride, at::IntArrayRef dilation, int64_t groups,
                                        std::string_view activation,
                                        torch::List<std::optional<at::Scalar>> activation_scalars,
                                        std::optional<std::string_view> activation_algorithm);

template <typename Function>
c10::TypedOperatorHandle<Function> operator_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

constexpr std::array<int64_t, 2> kNoDilation = {1, 1};

constexpr int64_t kMostWinogradNumbers = int64_t{8} << 20;  // of a weight: 960 to 960 channels

}  // namespace

PackedWeightsScope::PackedWeightsScope(PackedWeights* packed) : outer_(current) {
  current = packed;
}

PackedWeightsScope::~PackedWeightsScope() {
  current = outer_;
}

PackedWeights* packed_weights() {
  return current;
}

torch::Tensor PackedWeights::of_convolution(const torch::Tensor& weight, const torch::Tensor& x,
                                            const ConvShape& shape) {
  const TensorMemoryScope own_pages;  // of threads that have none: in malloc's heap they would stay when they are freed
  const std::lock_guard lock(mutex_);
  Packed& packed = packed_[{weight.unsafeGetTensorImpl(), x.sizes().vec()}];
  if (!packed.blocks.defined()) {
    static const auto pack = operator_named<PackConvolution>("mkldnn::_reorder_convolution_weight");
    const std::array<int64_t, 2> padding = {shape.padding, shape.padding}, stride = {shape.stride, shape.stride};
    packed = {weight, pack.call(weight, padding, stride, kNoDilation, 1, x.sizes())};
  }
  return packed.blocks;
}

bool PackedWeights::keeps_winograd(const torch::Tensor& weight) {
  return weight.scalar_type() == torch::kFloat32 && weight.numel() <= kMostWinogradNumbers;
}

torch::Tensor PackedWeights::of_winograd(const torch::Tensor& weight) {
  const TensorMemoryScope own_pages;
  const std::lock_guard lock(mutex_);
  Packed& packed = packed_[{weight.unsafeGetTensorImpl(), {}}];
  if (!packed.blocks.defined()) packed = {weight, winograd_weight(weight)};
  return packed.blocks;
}

std::size_t PackedWeights::count() {
  const std::lock_guard lock(mutex_);
  return packed_.size();
}

bool can_convolve_packed(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  const torch::Dtype dtype = x.scalar_type();
  return x.is_cpu() && (dtype == torch::kFloat32 || dtype == torch::kBFloat16) && weight.scalar_type() == dtype &&
         x.is_contiguous(torch::MemoryFormat::ChannelsLast) && !computes_in_float32(x) && !is_of_sizes_only() &&
         at::globalContext().hasMKLDNN() && at::globalContext().userEnabledMkldnn() &&
         !asks_for_gradient({x, weight, bias});
}

torch::Tensor packed_conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                            const ConvShape& shape, PackedWeights& packed) {
  static const auto convolve = operator_named<PackedConvolution>("mkldnn::_convolution_pointwise");
  RECORD_FUNCTION("sdtune::packed_convolution",  // the first arguments of aten::convolution
                  std::vector<c10::IValue>({x, weight, bias_or_none(bias), std::vector<int64_t>{shape.stride},
                                            std::vector<int64_t>{shape.padding}}));
  const std::array<int64_t, 2> padding = {shape.padding, shape.padding}, stride = {shape.stride, shape.stride};
  return convolve.call(x, packed.of_convolution(weight, x, shape), bias_or_none(bias), padding, stride, kNoDilation, 1,
                       "none", torch::List<std::optional<at::Scalar>>(), "");
}

}  // namespace sdtune::model
