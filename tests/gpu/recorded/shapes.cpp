#include "tests/gpu/recorded/shapes.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/List.h>
#include <ATen/native/ConvUtils.h>
#include <c10/util/strides.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tests/gpu/recorded/device.h"
#include "tests/gpu/recorded/record.h"

namespace sdtune::record {

namespace {

// The arguments of a call, and their removal.
class Call {
 public:
  Call(torch::jit::Stack& stack, std::size_t arguments) : stack_(stack), first_(stack.size() - arguments) {}
  const c10::IValue& operator[](std::size_t index) const { return stack_[first_ + index]; }
  at::Tensor tensor(std::size_t index) const {
    return (*this)[index].isTensor() ? (*this)[index].toTensor() : at::Tensor();
  }
  std::vector<std::int64_t> numbers(std::size_t index) const { return (*this)[index].toIntVector(); }
  bool mask(std::size_t index, std::size_t bit) const { return (*this)[index].toBoolList().get(bit); }
  void give(std::vector<c10::IValue> results) {
    stack_.resize(first_);
    for (c10::IValue& result : results) stack_.push_back(std::move(result));
  }

 private:
  torch::jit::Stack& stack_;
  std::size_t first_;
};

at::Tensor like(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense()) {
    return recorded_tensor(tensor.sizes(), tensor.strides(), tensor.scalar_type());
  }
  return recorded_tensor(tensor.sizes(), tensor.scalar_type());
}

std::vector<std::int64_t> strides_of(at::IntArrayRef sizes, at::MemoryFormat format) {
  return at::detail::empty_cpu(sizes, at::kByte, false, format).strides().vec();
}

at::Tensor in_format(at::IntArrayRef sizes, at::MemoryFormat format, at::ScalarType dtype) {
  return recorded_tensor(sizes, strides_of(sizes, format), dtype);
}

void note_contiguous(const std::string& where, const at::Tensor& tensor, at::MemoryFormat format) {
  if (tensor.is_contiguous(format)) return;
  note_layout_copy(where, tensor, strides_of(tensor.sizes(), format));
  Record::instance().add_operator("contiguous in " + where, 2 * touched_bytes(tensor));
}

void convolution(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  const at::Tensor input = call.tensor(0), weight = call.tensor(1);
  const auto padding = call.numbers(2), stride = call.numbers(3), dilation = call.numbers(4);
  const at::MemoryFormat format = at::native::cudnn_conv_suggest_memory_format(input, weight);
  note_contiguous("cudnn_convolution", input, format);
  note_contiguous("cudnn_convolution", weight, format);
  const auto sizes = at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
  call.give({in_format(sizes, format, input.scalar_type())});
}

void convolution_backward(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  const at::Tensor gradient = call.tensor(0), input = call.tensor(1), weight = call.tensor(2);
  const at::MemoryFormat format = at::native::cudnn_conv_suggest_memory_format(input, weight);
  for (const at::Tensor& tensor : {gradient, input, weight}) note_contiguous("convolution_backward", tensor, format);
  at::Tensor of_input, of_weight, of_bias;
  if (call.mask(10, 0)) of_input = in_format(input.sizes(), format, input.scalar_type());
  if (call.mask(10, 1)) of_weight = in_format(weight.sizes(), format, weight.scalar_type());
  if (call.mask(10, 2)) {
    of_bias = recorded_tensor({weight.size(0)}, weight.scalar_type());
    Record::instance().add_operator("aten::sum.dim_IntList", touched_bytes(gradient) + touched_bytes(of_bias));
  }
  call.give({of_input, of_weight, of_bias});
}

void group_norm(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  const at::Tensor x = call.tensor(0);
  note_contiguous("native_group_norm", x, at::MemoryFormat::Contiguous);
  const std::vector<std::int64_t> sizes = {call[3].toInt(), call[6].toInt()};
  call.give({recorded_tensor(x.sizes(), x.scalar_type()), recorded_tensor(sizes, x.scalar_type()),
             recorded_tensor(sizes, x.scalar_type())});
}

void group_norm_backward(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  const at::Tensor gradient = call.tensor(0), x = call.tensor(1);
  note_contiguous("native_group_norm_backward", gradient, at::MemoryFormat::Contiguous);
  note_contiguous("native_group_norm_backward", x, at::MemoryFormat::Contiguous);
  const auto of_channels = [&](std::size_t bit) {
    return call.mask(9, bit) ? recorded_tensor({x.size(1)}, x.scalar_type()) : at::Tensor();
  };
  const at::Tensor of_x = call.mask(9, 0) ? recorded_tensor(x.sizes(), x.scalar_type()) : at::Tensor();
  call.give({of_x, of_channels(1), of_channels(2)});
}

void layer_norm(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  const at::Tensor x = call.tensor(0);
  note_contiguous("native_layer_norm", x, at::MemoryFormat::Contiguous);
  std::vector<std::int64_t> sizes = x.sizes().vec();
  std::fill(sizes.end() - static_cast<std::ptrdiff_t>(call.numbers(1).size()), sizes.end(), 1);
  call.give({recorded_tensor(x.sizes(), x.scalar_type()), recorded_tensor(sizes, at::kFloat),
             recorded_tensor(sizes, at::kFloat)});
}

void layer_norm_backward(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  const at::Tensor x = call.tensor(1);
  note_contiguous("native_layer_norm_backward", call.tensor(0), at::MemoryFormat::Contiguous);
  const auto of = [&](std::size_t bit, at::IntArrayRef sizes) {
    return call.mask(7, bit) ? recorded_tensor(sizes, x.scalar_type()) : at::Tensor();
  };
  const auto shape = call.numbers(2);
  call.give({of(0, x.sizes()), of(1, shape), of(2, shape)});
}

// [B, H, N, D] whose memory is [B, N, H, D], as the kernels of attention write it.
at::Tensor heads_last(at::IntArrayRef sizes, at::ScalarType dtype) {
  return recorded_tensor({sizes[0], sizes[2], sizes[1], sizes[3]}, dtype).transpose(1, 2);
}

at::Tensor attended(const Call& call) {
  const at::Tensor q = call.tensor(0), v = call.tensor(2);
  return heads_last({q.size(0), q.size(1), q.size(2), v.size(3)}, q.scalar_type());
}

void flash_attention(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  const at::Tensor q = call.tensor(0), k = call.tensor(1);
  const at::Tensor logsumexp = recorded_tensor({q.size(0), q.size(1), q.size(2)}, at::kFloat);
  const at::Tensor state = recorded_tensor({2}, at::kUInt64);
  const at::Tensor unused = recorded_tensor({}, at::kUInt64);
  call.give({attended(call), logsumexp, at::Tensor(), at::Tensor(), q.size(2), k.size(2), state, unused,
             recorded_tensor({0}, q.scalar_type())});
}

void flash_attention_backward(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  std::vector<c10::IValue> results;
  for (std::size_t i = 1; i <= 3; ++i) {
    results.emplace_back(heads_last(call.tensor(i).sizes(), call.tensor(i).scalar_type()));
  }
  call.give(std::move(results));
}

void efficient_attention(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  const at::Tensor q = call.tensor(0);
  const std::int64_t rows = call[4].toBool() ? (q.size(2) + 31) / 32 * 32 : 0;
  call.give({attended(call), recorded_tensor({q.size(0), q.size(1), rows}, at::kFloat), recorded_tensor({}, at::kLong),
             recorded_tensor({}, at::kLong)});
}

void efficient_attention_backward(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  std::vector<c10::IValue> results;
  for (std::size_t i = 1; i <= 3; ++i) {
    const at::Tensor tensor = call.tensor(i);
    results.emplace_back(call.mask(10, i - 1) ? heads_last(tensor.sizes(), tensor.scalar_type()) : at::Tensor());
  }
  results.emplace_back(at::Tensor());
  call.give(std::move(results));
}

void index_select(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  const at::Tensor self = call.tensor(0);
  std::vector<std::int64_t> sizes = self.sizes().vec();
  if (!sizes.empty())
    sizes[static_cast<std::size_t>(at::maybe_wrap_dim(call[1].toInt(), self.dim()))] = call.tensor(2).numel();
  call.give({recorded_tensor(sizes, self.scalar_type())});
}

void embedding_backward(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  const at::Tensor gradient = call.tensor(0);
  call.give({recorded_tensor({call[2].toInt(), gradient.size(-1)}, gradient.scalar_type())});
}

void where(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  const auto sizes =
      at::infer_size(at::infer_size(call.tensor(0).sizes(), call.tensor(1).sizes()), call.tensor(2).sizes());
  call.give({recorded_tensor(sizes, at::result_type(call.tensor(1), call.tensor(2)))});
}

void like_first(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  call.give({like(call.tensor(0))});
}

void like_second(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  call.give({like(call.tensor(1))});
}

void places_like_first(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  call.give({recorded_tensor(call.tensor(0).sizes(), at::kLong)});
}

void truths_like_first(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  call.give({recorded_tensor(call.tensor(0).sizes(), at::kBool)});
}

// (self, target, reduction, ..)
void huber_loss(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  const auto sizes = at::infer_size(call.tensor(0).sizes(), call.tensor(1).sizes());
  const bool keeps_all = call[2].toInt() == 0;
  call.give({recorded_tensor(keeps_all ? at::IntArrayRef(sizes) : at::IntArrayRef(), call.tensor(0).scalar_type())});
}

// CUDA's buffer for the backward pass is empty.
void log_sigmoid(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  const at::Tensor x = call.tensor(0);
  call.give({like(x), recorded_tensor({0}, x.scalar_type())});
}

void number_like_first(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  call.give({recorded_tensor({}, call.tensor(0).scalar_type())});
}

void list_like_first(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  c10::List<at::Tensor> results;
  for (const at::Tensor& tensor : call[0].toTensorVector()) results.push_back(like(tensor));
  call.give({results});
}

void list_of_numbers(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  c10::List<at::Tensor> results;
  for (const at::Tensor& tensor : call[0].toTensorVector())
    results.push_back(recorded_tensor({}, tensor.scalar_type()));
  call.give({results});
}

// What the host waits for. Values are zeros, sizes the largest possible.
void read_number(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  Record::instance().add_wait("item");
  const at::ScalarType dtype = call.tensor(0).scalar_type();
  call.give({dtype == at::kBool                 ? at::Scalar(false)
             : at::isIntegralType(dtype, false) ? at::Scalar(0)
                                                : at::Scalar(0.0)});
}

void compare(torch::jit::Stack& stack, std::size_t arguments) {
  Record::instance().add_wait("equal");
  Call(stack, arguments).give({true});
}

void find_nonzero(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  Record::instance().add_wait("nonzero");
  call.give({recorded_tensor({call.tensor(0).numel(), call.tensor(0).dim()}, at::kLong)});
}

void select_masked(torch::jit::Stack& stack, std::size_t arguments) {
  Call call(stack, arguments);
  Record::instance().add_wait("masked_select");
  call.give({recorded_tensor({call.tensor(0).numel()}, call.tensor(0).scalar_type())});
}

const std::map<std::string, ResultShape> kShapes = {
    {"aten::cudnn_convolution", convolution},
    {"aten::convolution_backward", convolution_backward},
    {"aten::native_group_norm", group_norm},
    {"aten::native_group_norm_backward", group_norm_backward},
    {"aten::native_layer_norm", layer_norm},
    {"aten::native_layer_norm_backward", layer_norm_backward},
    {"aten::_scaled_dot_product_flash_attention", flash_attention},
    {"aten::_scaled_dot_product_flash_attention_backward", flash_attention_backward},
    {"aten::_scaled_dot_product_efficient_attention", efficient_attention},
    {"aten::_scaled_dot_product_efficient_attention_backward", efficient_attention_backward},
    {"aten::index_select", index_select},
    {"aten::embedding_dense_backward", embedding_backward},
    {"aten::where.self", where},
    {"aten::mse_loss_backward", like_second},
    {"aten::bucketize.Tensor", places_like_first},
    {"aten::isnan", truths_like_first},
    {"aten::huber_loss", huber_loss},
    {"aten::log_sigmoid_forward", log_sigmoid},
    {"aten::log_sigmoid_backward", like_second},
    {"aten::relu", like_first},
    {"aten::leaky_relu_backward", like_second},
    {"aten::max", number_like_first},
    {"aten::min", number_like_first},
    {"aten::_foreach_norm.Scalar", list_of_numbers},
    {"aten::_local_scalar_dense", read_number},
    {"aten::equal", compare},
    {"aten::nonzero", find_nonzero},
    {"aten::masked_select", select_masked},
};

}  // namespace

ResultShape result_shape(const std::string& name) {
  const auto found = kShapes.find(name);
  if (found != kShapes.end()) return found->second;
  return name.starts_with("aten::_foreach_") ? list_like_first : nullptr;
}

at::Tensor recorded_tensor(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype) {
  return at::detail::empty_strided_generic(sizes, strides, &device_memory(),
                                           c10::DispatchKeySet(c10::DispatchKey::CUDA), dtype);
}

at::Tensor recorded_tensor(at::IntArrayRef sizes, at::ScalarType dtype) {
  return recorded_tensor(sizes, c10::contiguous_strides(sizes), dtype);
}

std::int64_t touched_bytes(const at::Tensor& tensor) {
  std::int64_t count = 1;
  for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) count *= tensor.stride(dim) == 0 ? 1 : tensor.size(dim);
  return tensor.numel() == 0 ? 0 : count * static_cast<std::int64_t>(tensor.itemsize());
}

void note_layout_copy(const std::string& where, const at::Tensor& from, at::IntArrayRef to_strides) {
  std::vector<std::int64_t> dims;
  for (std::int64_t dim = 0; dim < from.dim(); ++dim) {
    if (from.size(dim) > 1) dims.push_back(dim);
  }
  const auto order = [&](at::IntArrayRef strides) {
    std::vector<std::int64_t> sorted = dims;
    std::stable_sort(sorted.begin(), sorted.end(), [&](std::int64_t a, std::int64_t b) {
      return strides[static_cast<std::size_t>(a)] > strides[static_cast<std::size_t>(b)];
    });
    return sorted;
  };
  const bool expands = std::any_of(dims.begin(), dims.end(), [&](std::int64_t dim) { return from.stride(dim) == 0; });
  if (expands || order(from.strides()) == order(to_strides)) return;
  std::string shape;
  for (const std::int64_t size : from.sizes()) shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  Record::instance().add_layout_copy(where + " [" + shape + "]", 2 * touched_bytes(from));
}

}  // namespace sdtune::record
