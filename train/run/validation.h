// Validation pictures: what the model draws now.
#pragma once

#include <cstdint>
#include <optional>

#include "train/observe/observer.h"
#include "train/run/run.h"
#include "train/run/train.h"

namespace sdtune::train {

// Each rank draws its share (picture i with seed + i); every rank gets all of them, or nothing when any rank was asked
// to stop meanwhile.
std::optional<ValidationEvent> draw_validation(Run& run, std::int64_t step, const StopFlag& stop);

}  // namespace sdtune::train
