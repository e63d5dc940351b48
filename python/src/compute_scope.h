// What surrounds every call that computes: py::call_guard<ComputeScope>().
#pragma once

#include <ATen/core/grad_mode.h>
#include <pybind11/pybind11.h>

#include "model/core/tensor_memory.h"
#include "model/core/tf32_scope.h"
#include "python/src/forked_process.h"

namespace sdtune::python {

struct UnforkedProcess {
  UnforkedProcess() { require_unforked_process(); }
};

// Other Python threads run meanwhile, and no graph is kept for a backward pass. Throws as require_unforked_process
// does.
struct ComputeScope {
  UnforkedProcess unforked{};
  pybind11::gil_scoped_release unlocked{};
  at::NoGradGuard no_grad;
  model::TensorMemoryScope memory;
  model::Tf32Scope tf32{false};  // float32 means float32
};

}  // namespace sdtune::python
