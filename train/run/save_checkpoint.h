// A checkpoint of the whole run, whichever ranks hold its parts.
#pragma once

#include <cstdint>
#include <filesystem>

#include "train/checkpoint/checkpoint_writer.h"
#include "train/run/run.h"

namespace sdtune::train {

// The state after `done` steps, written by the first rank. Where optimizer states are shared out, every rank calls this
// at the same time and sends its own, some tensors at a time; else only the first rank does. Returns the checkpoint's
// path on the first rank. Throws StorageError there, PeerLostError on any.
std::filesystem::path save_checkpoint(Run& run, CheckpointWriter& writer, std::int64_t done);

}  // namespace sdtune::train
