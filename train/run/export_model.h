// The result of a run.
#pragma once

#include "model/base/file_system.h"
#include "train/run/run.h"

namespace sdtune::train {

// Writes model/ as a diffusers folder in float32, from the masters and not from the rounded weights. Afterwards the
// modules hold float32. sdtune.json beside it names the words that call the subject.
void export_model(FileSystem& files, Run& run);

}  // namespace sdtune::train
