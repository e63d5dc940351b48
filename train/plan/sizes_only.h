// Passes of which only the sizes are wanted: allocations and operators as always, without the arithmetic that takes the
// time. A pass of SDXL then takes seconds, and its weights, which are not read, no memory.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace sdtune::train {

// While it lives, what takes the time of this thread's passes (matrix products, convolutions, attention, normalization,
// large sums and copies) allocates its results and leaves them undefined; everything else is computed. What LibTorch's
// CPU kernels allocate for themselves meanwhile is then not seen.
class SizesOnlyScope {
 public:
  SizesOnlyScope();

 private:
  c10::impl::IncludeDispatchKeyGuard included_;
};

}  // namespace sdtune::train
