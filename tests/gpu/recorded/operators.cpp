// Takes the place of LibTorch's operators for CUDA: each is counted, its results are made, and nothing is computed.
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/gpu/recorded/contents.h"
#include "tests/gpu/recorded/device.h"
#include "tests/gpu/recorded/record.h"
#include "tests/gpu/recorded/shapes.h"

namespace sdtune::record {

namespace {

using torch::jit::Stack;

// What reads no memory of a device; LibTorch's own work here as they are.
const std::set<std::string> kViews = {"aten::as_strided",
                                      "aten::view",
                                      "aten::view.dtype",
                                      "aten::_reshape_alias",
                                      "aten::unfold",
                                      "aten::view_as_real",
                                      "aten::view_as_complex",
                                      "aten::set_.source_Storage",
                                      "aten::set_.source_Storage_storage_offset",
                                      "aten::set_.source_Tensor",
                                      "aten::set_",
                                      "aten::is_set_to"};
// They write all of their first argument and read none of it.
const std::set<std::string> kWriteOnly = {"aten::fill_.Scalar",    "aten::fill_.Tensor", "aten::zero_",
                                          "aten::normal_",         "aten::uniform_",     "aten::random_",
                                          "aten::arange.start_out"};

// Tensors of an argument, in lists too.
template <typename Function>
void each_tensor(const c10::IValue& value, const Function& use) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) use(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) each_tensor(item, use);
  }
}

at::Tensor to_meta(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta()) return tensor;
  if (tensor.is_cpu() && tensor.dim() == 0) return tensor;
  return at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type());
}

c10::IValue to_meta(const c10::IValue& value) {
  if (value.isTensor()) return to_meta(value.toTensor());
  if (value.isDevice()) return value.toDevice().is_cuda() ? c10::Device(c10::kMeta) : value.toDevice();
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(to_meta(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional(to_meta(*tensor)) : std::nullopt);
    }
    return list;
  }
  return value;
}

c10::IValue to_recorded(const c10::IValue& value) {
  const auto make = [](const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_meta()) return tensor;
    return recorded_tensor(tensor.sizes(), tensor.strides(), tensor.scalar_type());
  };
  if (value.isTensor()) return make(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(make(tensor));
    return list;
  }
  return value;
}

// Which argument a result is, or -1 for a new one.
int argument_of(const c10::FunctionSchema& schema, const c10::Argument& result) {
  if (result.alias_info() == nullptr || !result.alias_info()->isWrite()) return -1;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && alias->beforeSets() == result.alias_info()->beforeSets()) return static_cast<int>(i);
  }
  return -1;
}

bool only_writes_arguments(const c10::FunctionSchema& schema) {
  for (const c10::Argument& result : schema.returns()) {
    if (argument_of(schema, result) < 0) return false;
  }
  return true;
}

// An `out` of another size gets the one of the result.
void resize_out(const at::Tensor& out, const at::Tensor& wanted) {
  if (out.sizes() == wanted.sizes()) return;
  const at::Tensor fresh = recorded_tensor(wanted.sizes(), wanted.strides(), wanted.scalar_type());
  out.unsafeGetTensorImpl()->set_storage_keep_dtype(fresh.storage());
  out.unsafeGetTensorImpl()->set_storage_offset(0);
  out.unsafeGetTensorImpl()->set_sizes_and_strides(wanted.sizes(), wanted.strides());
}

void return_arguments(const c10::FunctionSchema& schema, Stack& stack, std::size_t first) {
  std::vector<c10::IValue> results;
  for (const c10::Argument& result : schema.returns()) {
    results.push_back(stack[first + static_cast<std::size_t>(argument_of(schema, result))]);
  }
  stack.resize(first);
  for (c10::IValue& result : results) stack.push_back(std::move(result));
}

bool is_out_variant(const c10::FunctionSchema& schema) {
  return !schema.arguments().empty() && schema.arguments().back().is_out();
}

// `out` of elementwise operators that the meta device does not know (abs.out).
void broadcast_into_out(const c10::FunctionSchema& schema, Stack& stack, std::size_t first) {
  std::vector<std::int64_t> sizes;
  for (std::size_t i = first; i + 1 < stack.size(); ++i) {
    each_tensor(stack[i], [&](const at::Tensor& tensor) { sizes = at::infer_size(sizes, tensor.sizes()); });
  }
  const at::Tensor out = stack.back().toTensor();
  resize_out(out, at::detail::empty_meta(sizes, out.scalar_type()));
  return_arguments(schema, stack, first);
}

// Shapes from LibTorch's meta device.
void run_on_meta(const c10::OperatorHandle& op, Stack& stack, std::size_t first) {
  const c10::FunctionSchema& schema = op.schema();
  const std::vector<c10::IValue> arguments(stack.begin() + static_cast<std::ptrdiff_t>(first), stack.end());
  for (std::size_t i = first; i < stack.size(); ++i) stack[i] = to_meta(stack[i]);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  for (std::size_t i = 0; i < schema.returns().size(); ++i) {
    c10::IValue& result = stack[first + i];
    const int argument = argument_of(schema, schema.returns()[i]);
    if (argument < 0) {
      result = to_recorded(result);
      continue;
    }
    const c10::IValue& own = arguments[static_cast<std::size_t>(argument)];
    if (own.isTensor()) resize_out(own.toTensor(), result.toTensor());
    result = own;
  }
}

void count(const c10::OperatorHandle& op, const std::string& name, const Stack& stack, std::size_t first,
           const std::vector<c10::IValue>& arguments) {
  const c10::FunctionSchema& schema = op.schema();
  std::int64_t bytes = 0;
  const auto add = [&](const at::Tensor& tensor) { bytes += touched_bytes(tensor); };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool is_written =
        schema.arguments()[i].alias_info() != nullptr && schema.arguments()[i].alias_info()->isWrite();
    if (is_written) each_tensor(arguments[i], add);
    if (schema.arguments()[i].is_out() || (i == 0 && kWriteOnly.contains(name))) continue;
    each_tensor(arguments[i], add);
  }
  for (std::size_t i = first; i < stack.size(); ++i) {
    if (argument_of(schema, schema.returns()[i - first]) < 0) each_tensor(stack[i], add);
  }
  Record::instance().add_operator(name, bytes);
}

// The index of a tensor of the GPU may be on the host, from where it is uploaded.
void note_uploads(const std::vector<c10::IValue>& arguments) {
  const auto note = [](const at::Tensor& tensor) {
    if (tensor.is_cpu() && tensor.dim() > 0) Record::instance().add_wait("upload of an argument");
  };
  for (const c10::IValue& argument : arguments) each_tensor(argument, note);
}

// A device without an index is the thread's own.
std::optional<c10::Device> with_index(std::optional<c10::Device> device) {
  return device && device->is_cuda() && device->has_index() ? device : std::nullopt;
}

// The GPU whose tensors or name an operator is given. Throws where its tensors lie on several, as LibTorch does.
std::optional<c10::Device> device_of(const std::vector<c10::IValue>& arguments) {
  std::optional<c10::Device> device;
  const auto note = [&](const at::Tensor& tensor) {
    if (!tensor.is_cuda()) return;
    TORCH_CHECK(!device || *device == tensor.device(), "recorded GPU: tensors on ", *device, " and ", tensor.device());
    device = tensor.device();
  };
  for (const c10::IValue& argument : arguments) each_tensor(argument, note);
  for (const c10::IValue& argument : arguments) {
    if (!device && argument.isDevice() && argument.toDevice().is_cuda()) device = argument.toDevice();
  }
  return with_index(device);
}

void run_operator(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::FunctionSchema& schema = op.schema();
  const std::string name = c10::toString(op.operator_name());
  const std::size_t first = stack->size() - schema.arguments().size();
  const std::vector<c10::IValue> arguments(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
  const c10::OptionalDeviceGuard guard(device_of(arguments));
  note_uploads(arguments);
  if (const ResultShape shape = only_writes_arguments(schema) ? nullptr : result_shape(name)) {
    shape(*stack, arguments.size());
  } else if (only_writes_arguments(schema) && !is_out_variant(schema)) {
    return_arguments(schema, *stack, first);
  } else if (is_out_variant(schema) && !op.hasKernelForDispatchKey(c10::DispatchKey::Meta)) {
    broadcast_into_out(schema, *stack, first);
  } else {
    run_on_meta(op, *stack, first);
  }
  count(op, name, *stack, first, arguments);
}

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(with_index(device));
  const at::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(size);
  const at::Tensor shape = at::detail::empty_meta(sizes, dtype.value_or(at::kFloat), format);
  return recorded_tensor(sizes, shape.strides(), shape.scalar_type());
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(with_index(device));
  return recorded_tensor(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), dtype.value_or(at::kFloat));
}

const at::Tensor& resize(const at::Tensor& self, c10::SymIntArrayRef size, std::optional<at::MemoryFormat> format) {
  const at::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(size);
  resize_out(self, at::detail::empty_meta(sizes, self.scalar_type(), format));
  return self;
}

// Between the host and the GPU only a copy that asks for it, from or to pinned memory, lets the host go on.
void cross_over(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  Record& record = Record::instance();
  const at::Tensor& host = to.is_cpu() ? to : from;
  const bool runs_on = non_blocking && (host.numel() == 0 || is_pinned(host.const_data_ptr()));
  record.add_copy(to.is_cpu());
  if (!runs_on) record.add_wait(to.is_cpu() ? "copy to the host" : "copy from the host");
  if (!to.is_cpu()) {
    if (from.is_contiguous()) keep_contents(to.const_data_ptr(), from.const_data_ptr(), from.nbytes());
    return;
  }
  std::vector<char> bytes = contents_of(from.const_data_ptr());
  if (bytes.size() != from.nbytes()) {
    to.zero_();
  } else {
    to.copy_(at::from_blob(bytes.data(), from.sizes(), from.options().device(at::kCPU)));
  }
}

at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (self.is_cuda() != source.is_cuda()) {
    cross_over(self, source, non_blocking);
    return self;
  }
  if (self.numel() == 0) return self;
  if (self.sizes() == source.sizes()) note_layout_copy("copy_", source, self.strides());
  const bool casts = self.scalar_type() != source.scalar_type();
  Record::instance().add_operator(casts ? "aten::copy_ (cast)" : "aten::copy_",
                                  touched_bytes(self) + touched_bytes(source));
  return self;
}

// As CUDA's own choice: flash attention in half precision, else the memory-efficient kernel.
std::int64_t choose_attention(const at::Tensor& query, const at::Tensor&, const at::Tensor&,
                              const std::optional<at::Tensor>& mask, double, bool, std::optional<double>, bool) {
  const bool is_half = query.scalar_type() == at::kHalf || query.scalar_type() == at::kBFloat16;
  return is_half && !(mask && mask->defined()) && query.size(-1) <= 256 ? 1 : 2;
}

// One warning a process would say that operators are replaced, which is what this library is for.
class Silent final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

struct Installation {
  Installation() : library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__) {
    install_device();
    Silent silent;
    const c10::WarningUtils::WarningHandlerGuard quiet(&silent);
    const std::set<std::string> own = {"aten::empty.memory_format", "aten::empty_strided", "aten::resize_",
                                       "aten::copy_"};
    for (const c10::OperatorName& name :
         c10::Dispatcher::singleton().getRegistrationsForDispatchKey(c10::DispatchKey::CUDA)) {
      const std::string text = c10::toString(name);
      if (!text.starts_with("aten::") || kViews.contains(text) || own.contains(text)) continue;
      library.impl(text.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_operator>());
    }
    library.impl("empty.memory_format", TORCH_FN(empty));
    library.impl("empty_strided", TORCH_FN(empty_strided));
    library.impl("resize_", TORCH_FN(resize));
    library.impl("copy_", TORCH_FN(copy));
    at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(choose_attention);
  }

  torch::Library library;
};

// Never destroyed: other static objects may still hold tensors.
[[maybe_unused]] const Installation& installation = *new Installation;

}  // namespace

}  // namespace sdtune::record
