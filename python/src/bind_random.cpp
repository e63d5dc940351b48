// sdtune.Generator: the draws of torch.Generator("cpu").
#include <ATen/CPUGeneratorImpl.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/core/random.h"
#include "model/schedule/noise_source.h"
#include "python/src/array_caster.h"
#include "python/src/module.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

model::DrawKey key_of(std::uint64_t seed, std::uint32_t purpose, std::uint64_t step, std::uint64_t sample,
                      bool class_image) {
  return {seed, static_cast<model::Draw>(purpose), step, sample, class_image};
}

std::vector<std::int64_t> shape_of(const py::args& shape) {
  try {
    auto sizes = shape.cast<std::vector<std::int64_t>>();
    if (std::all_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size >= 0; })) return sizes;
  } catch (const py::cast_error&) {  // refused below
  }
  throw ConfigError("shape", "got " + std::string(py::repr(shape)).substr(0, 80) +
                                 " (allowed: whole numbers from 0, as in generator.randn(2, 4))");
}

// Training's own draws, which a reference loop needs to do the same steps. `purpose` is a value of model::Draw.
void register_testing_random(py::module_& module) {
  py::module_ testing = module.def_submodule("testing", "What only tests need.");
  testing.def(
      "draw_normal",
      [](std::uint64_t seed, std::uint32_t purpose, std::uint64_t step, std::uint64_t sample,
         const std::vector<std::int64_t>& shape,
         bool class_image) { return model::draw_normal(key_of(seed, purpose, step, sample, class_image), shape); },
      py::arg("seed"), py::arg("purpose"), py::arg("step"), py::arg("sample"), py::arg("shape"),
      py::arg("class_image") = false, "Standard normal numbers of one sample, float32.");
  testing.def(
      "draw_uniform",
      [](std::uint64_t seed, std::uint32_t purpose, std::uint64_t step, std::uint64_t sample, bool class_image) {
        return model::draw_uniform(key_of(seed, purpose, step, sample, class_image));
      },
      py::arg("seed"), py::arg("purpose"), py::arg("step"), py::arg("sample"), py::arg("class_image") = false,
      "A number in [0, 1).");
  testing.def(
      "draw_integer",
      [](std::uint64_t seed, std::uint32_t purpose, std::uint64_t step, std::uint64_t sample, std::int64_t below,
         bool class_image) { return model::draw_integer(key_of(seed, purpose, step, sample, class_image), below); },
      py::arg("seed"), py::arg("purpose"), py::arg("step"), py::arg("sample"), py::arg("below"),
      py::arg("class_image") = false, "An integer in [0, below).");
  testing.def(
      "draw_permutation",
      [](std::uint64_t seed, std::uint32_t purpose, std::uint64_t epoch, std::int64_t count) {
        return model::draw_permutation(seed, static_cast<model::Draw>(purpose), epoch, count);
      },
      py::arg("seed"), py::arg("purpose"), py::arg("epoch"), py::arg("count"), "The order of an epoch.");
  register_testing_optimizers(testing);
}

}  // namespace

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
          [](at::Generator& self, const py::args& shape) { return at::randn(shape_of(shape), self, torch::kFloat32); },
          "The next standard normal random numbers, a float32 array of the given shape: generator.randn(2, 4).");
  register_testing_random(module);
}

}  // namespace sdtune::python
