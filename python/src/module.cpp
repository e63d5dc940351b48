#include "python/src/module.h"

namespace py = pybind11;

namespace sdtune::python {
// Weak: a part whose file is not built (image without OpenCV) is left out.
__attribute__((weak)) void register_random(py::module_& module);
__attribute__((weak)) void register_tokenizer(py::module_& module);
__attribute__((weak)) void register_models(py::module_& module);
__attribute__((weak)) void register_schedulers(py::module_& module);
__attribute__((weak)) void register_image(py::module_& module);
__attribute__((weak)) void register_observe(py::module_& module);
__attribute__((weak)) void register_config(py::module_& module);
__attribute__((weak)) void register_pipeline(py::module_& module);
__attribute__((weak)) void register_train(py::module_& module);
}  // namespace sdtune::python

PYBIND11_MODULE(_native, module) {
  using namespace sdtune::python;  // NOLINT: the list below is all there is
  module.doc() = "The C++ core of sdtune. Import sdtune, which shows all of it.";
  // A type must be known before a signature that names it.
  register_errors(module);
  for (const auto add : {register_random, register_tokenizer, register_models, register_schedulers, register_image,
                         register_observe, register_config, register_pipeline, register_train}) {
    if (add != nullptr) add(module);
  }
  module.attr("__version__") = SDTUNE_VERSION;
}
