// What a user should know of this machine before a run starts that would start.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/error.h"
#include "train/config/train_config.h"

namespace sdtune::train {

// A GPU that is there and not used; a GPU with less memory than the run's preset needs; mixed_precision: auto on a CPU
// of a kind that no table knows.
std::vector<Problem> machine_warnings(const TrainConfig& config);

// The second one, for a GPU of so many bytes. Unset where the preset's needs are not known, or the run sets options
// that decide them itself (train/config/preset_memory.h).
std::optional<Problem> memory_warning(const TrainConfig& config, std::uint64_t memory_bytes);

}  // namespace sdtune::train
