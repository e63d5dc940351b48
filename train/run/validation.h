// A look at the model as it is now: pictures, and the loss on held-out photos.
#pragma once

#include <cstdint>
#include <optional>

#include "train/observe/observer.h"
#include "train/run/run.h"
#include "train/run/train.h"

namespace sdtune::train {

// What the options ask for. Each rank draws its share (picture i with seed + i); every rank gets all of them, or
// nothing when any rank was asked to stop meanwhile.
std::optional<ValidationEvent> validate_model(Run& run, std::int64_t step, const StopFlag& stop);

}  // namespace sdtune::train
