// What an optimizer will keep, before there is one.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>

#include "train/config/optim_options.h"

namespace sdtune::train {

// Bytes of the states (Optimizer::states()) of one parameter of that shape, masters not counted.
std::int64_t optimizer_state_bytes(const OptimOptions& options, c10::IntArrayRef shape);

// Bytes that a checkpoint holds of it: master and states, and the average where the options ask for one.
std::int64_t saved_bytes(const OptimOptions& options, c10::IntArrayRef shape);

}  // namespace sdtune::train
