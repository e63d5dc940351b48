// A checkpoint of the whole run, whichever ranks hold its parts.
#pragma once

#include <cstdint>
#include <filesystem>

#include "train/checkpoint/checkpoint_writer.h"
#include "train/run/background_save.h"
#include "train/run/run.h"

namespace sdtune::train {

// The state after `done` steps, written by the first rank. Where optimizer states are shared out, every rank calls this
// at the same time and sends its own, some tensors at a time; else only the first rank does. Returns the checkpoint's
// path on the first rank. Throws StorageError there, PeerLostError on any.
std::filesystem::path save_checkpoint(Run& run, CheckpointWriter& writer, std::int64_t done);

// The same state in host memory of its own, for a thread that writes it; of a run whose states are not shared out.
// Waits for the device.
CheckpointCopy copy_checkpoint(const Run& run, std::int64_t done);

// Whether a GPU may train on while a checkpoint is written: not where optimizer states are shared out, which every rank
// then sends, nor where the host has no memory to spare for a copy.
bool can_save_in_background(const Run& run);

}  // namespace sdtune::train
