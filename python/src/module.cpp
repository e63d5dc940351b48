#include "python/src/module.h"

#include "model/core/cuda_library.h"
#include "model/machine/processor_table.h"

namespace py = pybind11;

PYBIND11_MODULE(_native, module) {
  using namespace sdtune::python;  // NOLINT: the list below is all there is
  module.doc() = "The C++ core of sdtune. Import sdtune, which shows all of it.";
  // A type must be known before a signature that names it.
  register_errors(module);
  register_random(module);
  register_tokenizer(module);
  register_models(module);
  register_schedulers(module);
#ifdef SDTUNE_READS_IMAGES
  register_image(module);
#endif
  register_observe(module);
  register_config(module);
  register_pipeline(module);
  register_plan(module);
  register_train(module);
  py::module_ testing = module.attr("testing");
  register_testing_lora(testing);
  // LibTorch remembers whether there was an accelerator when it first computed, on a CPU too.
  sdtune::model::load_cuda_where_usable();
  sdtune::model::take_implementation_from_table();
  module.attr("__version__") = SDTUNE_VERSION;
}
