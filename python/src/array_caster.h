// Arrays at the border: a bound function that takes or returns torch::Tensor takes NumPy arrays (or numbers, lists, and
// anything with __dlpack__) and returns NumPy arrays, without importing torch into Python.
//
// In: the dtype and shape of the array, always a copy, because a scheduler may keep its inputs and the caller may write
// into the array while the interpreter lock is released. Out: float32 for floating dtypes, int64 for whole numbers,
// uint8 and bool as they are, on the CPU; a result with no other owner is handed over without a copy.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <torch/types.h>

#include <optional>

namespace sdtune::python {

// Needs the interpreter lock. None when the object is no array of numbers.
std::optional<torch::Tensor> tensor_of(pybind11::handle object);
pybind11::array array_of(torch::Tensor tensor);

}  // namespace sdtune::python

namespace pybind11::detail {

template <>
struct type_caster<at::Tensor> {
 public:
  PYBIND11_TYPE_CASTER(at::Tensor, io_name("numpy.typing.ArrayLike", "numpy.ndarray"));

  bool load(handle source, bool convert) {
    if (!source || source.is_none() || (!convert && !isinstance<array>(source))) return false;
    std::optional<at::Tensor> tensor = sdtune::python::tensor_of(source);
    if (!tensor) return false;
    value = *std::move(tensor);
    return true;
  }
  // An undefined tensor becomes None.
  static handle cast(const at::Tensor& source, return_value_policy, handle) {
    if (!source.defined()) return none().release();
    return sdtune::python::array_of(source).release();
  }
  static handle cast(at::Tensor&& source, return_value_policy, handle) {
    if (!source.defined()) return none().release();
    return sdtune::python::array_of(std::move(source)).release();
  }
};

}  // namespace pybind11::detail
