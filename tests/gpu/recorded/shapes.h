// What operators of a GPU return, for those whose shape LibTorch's meta device does not know, and what they do inside.
#pragma once

#include <ATen/core/stack.h>

#include <string>

namespace sdtune::record {

// The results of one call, made of its arguments: they replace the arguments on the stack. Adds what
// the operator runs besides itself, and the layouts that it changes, to the record.
using ResultShape = void (*)(torch::jit::Stack& stack, std::size_t arguments);

// Null: the meta device knows, or the operator returns its arguments.
ResultShape result_shape(const std::string& name);

at::Tensor recorded_tensor(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype);
at::Tensor recorded_tensor(at::IntArrayRef sizes, at::ScalarType dtype);  // contiguous

std::int64_t touched_bytes(const at::Tensor& tensor);

// A copy from memory laid out as `from` to one laid out as `to`: counted as a layout copy where the order of their
// dimensions differs.
void note_layout_copy(const std::string& where, const at::Tensor& from, at::IntArrayRef to_strides);

}  // namespace sdtune::record
