#include "model/core/tf32_scope.h"

#include <ATen/Context.h>

#include <mutex>

namespace sdtune::model {

namespace {

std::mutex mutex;
int open_scopes = 0;
Tf32Switches outside;  // what they were before the first scope

Tf32Switches read_switches() {
  return {at::globalContext().allowTF32CuBLAS(), at::globalContext().allowTF32CuDNN()};
}

void set_switches(Tf32Switches switches) {
  at::globalContext().setAllowTF32CuBLAS(switches.products);
  at::globalContext().setAllowTF32CuDNN(switches.convolutions);
}

}  // namespace

Tf32Scope::Tf32Scope(bool allowed) {
  const std::lock_guard<std::mutex> lock(mutex);
  before_ = read_switches();
  if (open_scopes++ == 0) outside = before_;
  set_switches({allowed, allowed});
}

// Scopes of several threads may end in any order: the last one restores what was there before all of them.
Tf32Scope::~Tf32Scope() {
  const std::lock_guard<std::mutex> lock(mutex);
  set_switches(--open_scopes == 0 ? outside : before_);
}

}  // namespace sdtune::model
