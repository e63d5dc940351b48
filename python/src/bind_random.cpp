// sdtune.Generator: the draws of torch.Generator("cpu").
#include <ATen/CPUGeneratorImpl.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "model/schedule/noise_source.h"
#include "python/src/array_caster.h"
#include "python/src/module.h"

namespace py = pybind11;

namespace sdtune::python {

void register_random(py::module_& module) {
  py::class_<at::Generator>(
      module, "Generator",
      "A stateful source of random numbers: gives what torch.Generator('cpu') of the same seed gives.")
      .def(py::init(&model::make_cpu_generator), py::arg("seed") = 0)
      .def(
          "manual_seed",
          [](at::Generator& self, std::uint64_t seed) -> at::Generator& {
            const std::lock_guard<std::mutex> lock(self.mutex());
            self.set_current_seed(seed);
            return self;
          },
          py::arg("seed"), py::return_value_policy::reference, "Starts the sequence of `seed` anew; returns itself.")
      .def(
          "initial_seed", [](const at::Generator& self) { return self.current_seed(); }, "The seed it started from.")
      .def(
          "randn",
          [](at::Generator& self, const py::args& shape) {
            return at::randn(shape.cast<std::vector<std::int64_t>>(), self, torch::kFloat32);
          },
          "The next standard normal draws, a float32 array of the given shape: generator.randn(2, 4).");
}

}  // namespace sdtune::python
