// Passes of which only the sizes are wanted (train/plan/sizes_only.h).
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace sdtune::model {

// Of this thread: LibTorch's operators, replaced under this key, and kernels of model/kernels and model/products
// allocate their results and leave them undefined. Ways around a slow operator of some CPU are not taken, so that a
// plan is the same on all.
inline bool is_of_sizes_only() {
  return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Fake);
}

}  // namespace sdtune::model
