// Validation pictures: what the model draws now.
#pragma once

#include <cstdint>

#include "train/observe/observer.h"
#include "train/run/run.h"

namespace sdtune::train {

// Each rank draws its share (picture i with seed + i); every rank gets all of them.
ValidationEvent draw_validation(Run& run, std::int64_t step);

}  // namespace sdtune::train
