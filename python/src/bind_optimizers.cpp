// sdtune._native.testing.Optimizer: one optimizer by itself, for the tests that compare its numbers with others'.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/options/field.h"
#include "python/src/array_caster.h"
#include "python/src/module.h"
#include "train/optim/optimizer.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

using Arrays = std::map<std::string, torch::Tensor>;

train::OptimOptions options_from(const py::dict& given) {
  train::OptimOptions options;
  const FieldList fields = options.fields();
  for (const auto& [key, value] : given) {
    const auto name = py::str(key).cast<std::string>();
    const Field* field = find_field(fields, name);
    if (field == nullptr) throw py::key_error(name);
    set_field(*field, py::str(value).cast<std::string>(), name);
  }
  return options;
}

// Parameters by name, all with the same rate.
class TestedOptimizer {
 public:
  TestedOptimizer(const Arrays& weights, const py::dict& options) {
    std::vector<train::TrainedParameter> parameters;
    for (const auto& [name, start] : weights) {
      const torch::Tensor weight = start.to(torch::kFloat32).contiguous();
      parameters.push_back({name, weight, torch::zeros_like(weight), {}, 0});
    }
    optimizer_ = train::make_optimizer(std::move(parameters), options_from(options));
  }

  void step(const Arrays& gradients, double rate, float factor) {
    for (const train::TrainedParameter& parameter : optimizer_->parameters()) {
      parameter.gradient.copy_(gradients.at(parameter.name));
    }
    optimizer_->step(torch::full({1}, rate, torch::kFloat64), torch::scalar_tensor(factor));
  }

  Arrays weights() const {
    Arrays arrays;
    for (const auto& parameter : optimizer_->parameters()) arrays[parameter.name] = parameter.weight.clone();
    return arrays;
  }

  Arrays states() const {
    Arrays arrays;
    for (const auto& [name, state] : optimizer_->states()) arrays[name] = state.clone();
    return arrays;
  }

 private:
  std::unique_ptr<train::Optimizer> optimizer_;
};

}  // namespace

void register_testing_optimizers(py::module_& testing) {
  py::class_<TestedOptimizer>(testing, "Optimizer", "An optimizer of training over arrays by name.")
      .def(py::init<const Arrays&, const py::dict&>(), py::arg("weights"), py::arg("options"))
      .def("step", &TestedOptimizer::step, py::arg("gradients"), py::arg("rate"), py::arg("factor") = 1.0F)
      .def_property_readonly("weights", &TestedOptimizer::weights)
      .def_property_readonly("states", &TestedOptimizer::states);
}

}  // namespace sdtune::python
