// Validation of the model as it is now: images, and the loss on held-out photos.
#pragma once

#include <cstdint>
#include <optional>

#include "train/dist/shared_failure.h"
#include "train/observe/observer.h"
#include "train/run/run.h"
#include "train/run/train.h"

namespace sdtune::train {

struct ValidationOutcome {
  std::optional<ValidationEvent> event;  // unset where any rank was asked to stop, or failed
  std::optional<SharedFailure> failure;
};

// What the options ask for. Each rank generates its share (image i with seed + i); every rank gets all of them, or the
// same failure (see run_share).
ValidationOutcome validate_model(Run& run, std::int64_t step, const StopFlag& stop);

}  // namespace sdtune::train
