// How long a checkpoint will take, before there is one.
#pragma once

#include "model/files/file_system.h"
#include "train/run/run.h"

namespace sdtune::train {

// Bytes of a checkpoint: masters, the optimizer's states, averages.
std::int64_t checkpoint_bytes(const Run& run);

// s, estimated from writing and syncing as many bytes, but 64 MiB at most, into the run folder; the file is removed.
// Throws StorageError.
double estimate_save_seconds(FileSystem& files, const Run& run);

}  // namespace sdtune::train
