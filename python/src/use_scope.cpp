#include "python/src/use_scope.h"

#include <pybind11/pybind11.h>

#include <stdexcept>

#include "python/src/forked_process.h"

namespace sdtune::python {

UseScope::UseScope(PipelineUse& use) : use_(use) {
  require_unforked_process();  // another thread of the parent may have held the mutex
  if (use_.thread_.load() == std::this_thread::get_id()) {
    throw std::runtime_error(
        "the pipeline is in use by the call that runs this callback, which must not call it or change it; use another "
        "pipeline, or do it after the call");
  }
  if (!use_.mutex_.try_lock()) {
    const pybind11::gil_scoped_release unlocked;
    use_.mutex_.lock();
  }
  use_.thread_.store(std::this_thread::get_id());
}

UseScope::~UseScope() {
  use_.thread_.store({});
  use_.mutex_.unlock();
}

}  // namespace sdtune::python
