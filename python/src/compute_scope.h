// What surrounds every call that computes: py::call_guard<ComputeScope>().
#pragma once

#include <ATen/core/grad_mode.h>
#include <pybind11/pybind11.h>

namespace sdtune::python {

// Other Python threads run meanwhile, and no graph is kept for a backward pass.
struct ComputeScope {
  pybind11::gil_scoped_release unlocked;
  at::NoGradGuard no_grad;
};

}  // namespace sdtune::python
