#include "train/precision/tf32_scope.h"

#include <ATen/Context.h>

namespace sdtune::train {

Tf32Scope::Tf32Scope(bool allowed) : before_(at::globalContext().allowTF32CuBLAS()) {
  at::globalContext().setAllowTF32CuBLAS(allowed);
}

Tf32Scope::~Tf32Scope() {
  at::globalContext().setAllowTF32CuBLAS(before_);
}

}  // namespace sdtune::train
