// From photo folder and configuration to what the steps read, once, before training.
#pragma once

#include <vector>

#include "train/observe/observer.h"
#include "train/run/run.h"
#include "train/run/train.h"

namespace sdtune::train {

// Fills run.data: scans photos, draws the class pictures that are missing (each rank its share), encodes pictures to
// moments and, while the encoder is frozen, captions to states. Needs config, folder, device, group, bundle (float32)
// and identity.base_hash. Throws DataError listing every picture that cannot be read, and
// StopRequest (stop_request.h) when asked to stop; what was drawn until then is kept.
void prepare_data(Run& run, const std::vector<Observer*>& observers, const StopFlag& stop);

}  // namespace sdtune::train
