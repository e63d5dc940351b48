#include "python/src/array_caster.h"

#include <ATen/DLConvertor.h>
#include <torch/types.h>

#include <utility>
#include <vector>

namespace py = pybind11;

namespace sdtune::python {

namespace {

std::optional<torch::Dtype> torch_dtype(const py::dtype& dtype) {
  const char kind = dtype.kind();
  const py::ssize_t size = dtype.itemsize();
  if (kind == 'b') return torch::kBool;
  if (kind == 'f' && size == 2) return torch::kFloat16;
  if (kind == 'f' && size == 4) return torch::kFloat32;
  if (kind == 'f' && size == 8) return torch::kFloat64;
  if (kind == 'u' && size == 1) return torch::kUInt8;
  if (kind == 'i' && size == 1) return torch::kInt8;
  if (kind == 'i' && size == 2) return torch::kInt16;
  if (kind == 'i' && size == 4) return torch::kInt32;
  if (kind == 'i' && size == 8) return torch::kInt64;
  return std::nullopt;
}

// The same numbers in a type that tensors have: of another order of bytes, and whole numbers without a sign.
py::object with_tensor_type(const py::array& given) {
  const py::dtype dtype = given.dtype();
  const bool is_wide = dtype.kind() == 'u' && (dtype.itemsize() == 2 || dtype.itemsize() == 4);
  if (is_wide) return given.attr("astype")("int64");
  if (dtype.byteorder() == '>') return given.attr("astype")(dtype.attr("newbyteorder")("="));
  return given;
}

std::optional<torch::Tensor> from_numpy(const py::array& asked) {
  const py::array given(with_tensor_type(asked));
  const std::optional<torch::Dtype> dtype = torch_dtype(given.dtype());
  if (!dtype) return std::nullopt;
  const py::array array = py::array::ensure(given, py::array::c_style);
  const std::vector<int64_t> shape(array.shape(), array.shape() + array.ndim());
  // Never written to: from_blob merely has no type for that.
  return torch::from_blob(const_cast<void*>(array.data()), shape, torch::dtype(*dtype)).clone();
}

// The capsule protocol of DLPack: whoever takes the tensor renames the capsule and calls the deleter once.
torch::Tensor from_dlpack(const py::handle& object) {
  const py::object capsule = object.attr("__dlpack__")();
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (managed == nullptr) throw py::error_already_set();
  torch::Tensor shared = at::fromDLPack(managed);
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  return shared.clone();
}

torch::Dtype result_dtype(torch::Dtype dtype) {
  if (c10::isFloatingType(dtype)) return torch::kFloat32;
  return dtype == torch::kBool || dtype == torch::kUInt8 ? dtype : torch::kInt64;
}

py::dtype numpy_dtype(torch::Dtype dtype) {
  if (dtype == torch::kFloat32) return py::dtype::of<float>();
  if (dtype == torch::kBool) return py::dtype::of<bool>();
  return dtype == torch::kUInt8 ? py::dtype::of<std::uint8_t>() : py::dtype::of<std::int64_t>();
}

}  // namespace

std::optional<torch::Tensor> tensor_of(py::handle object) {
  if (py::isinstance<py::array>(object)) return from_numpy(py::reinterpret_borrow<py::array>(object));
  if (py::hasattr(object, "__dlpack__")) return from_dlpack(object);
  if (py::isinstance<py::str>(object) || py::isinstance<py::bytes>(object)) return std::nullopt;
  const py::array array = py::array::ensure(object);  // numbers, and lists of them
  if (!array) {
    PyErr_Clear();
    return std::nullopt;
  }
  return from_numpy(array);
}

// By value: a tensor that the caller moved here is the only one of its storage.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
py::array array_of(torch::Tensor tensor) {
  const bool alone = tensor.use_count() == 1 && tensor.has_storage() && tensor.storage().use_count() == 1;
  const torch::Dtype dtype = result_dtype(tensor.scalar_type());
  const void* before = tensor.has_storage() ? tensor.storage().data() : nullptr;
  auto held = std::make_unique<torch::Tensor>(tensor.detach().to(torch::kCPU, dtype).contiguous());
  if (!alone && held->storage().data() == before) *held = held->clone();
  const std::vector<py::ssize_t> shape(held->sizes().begin(), held->sizes().end());
  const void* data = held->data_ptr();
  const py::capsule owner(held.release(), [](void* pointer) { delete static_cast<torch::Tensor*>(pointer); });
  return py::array(numpy_dtype(dtype), shape, data, owner);
}

}  // namespace sdtune::python
