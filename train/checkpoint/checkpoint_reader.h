// Finding a checkpoint that is whole, and resuming from it. What is half-written or damaged is never loaded.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/files/read_pieces.h"
#include "model/weights/safetensors_writer.h"
#include "train/checkpoint/run_state.h"
#include "train/optim/optimizer.h"

namespace sdtune::train {

// What is wrong with a checkpoint folder: no manifest, a file missing, of another size or hash (naming what was
// expected and found), an unreadable state. Empty when it can be loaded. Reads all of it.
std::vector<Problem> checkpoint_faults(const std::filesystem::path& checkpoint, PageCache cache = PageCache::kKeep);

struct FoundCheckpoint {
  std::optional<std::filesystem::path> path;  // unset: start fresh, which only `auto` allows
  std::vector<Problem> warnings;  // damaged checkpoints passed over; that nothing was there to resume; newer ones
};

// The checkpoint that `resume_from_checkpoint` (latest, auto or a folder) means. Throws CheckpointError: `latest` with
// nothing there; `latest` or `auto` with damaged checkpoints only; a folder that is not a valid checkpoint.
FoundCheckpoint find_checkpoint(const std::string& resume_from_checkpoint, const std::filesystem::path& checkpoints);

// Throws CheckpointError.
RunState read_run_state(const std::filesystem::path& checkpoint);

// Masters by parameter name, the optimizer's states by theirs, the number of updates, and the weights from the masters.
// `all`: every trained parameter, where the optimizer has only some of them; of the others the weights are read too.
// Which rank wrote what is not asked. Throws CheckpointError for a tensor that is missing, or of another shape or type;
// the optimizer is then partly loaded.
void load_optimizer(const std::filesystem::path& checkpoint, const RunState& state, Optimizer& optimizer,
                    const std::vector<TrainedParameter>& all = {});

// The averages that were written with it into `averages`, by name. Throws CheckpointError for one that is missing or of
// another shape.
void load_averages(const std::filesystem::path& checkpoint, const model::NamedTensors& averages);

}  // namespace sdtune::train
