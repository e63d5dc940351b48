// What a user should know of this machine before a run starts that would start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/core/cuda_driver.h"
#include "train/config/train_config.h"

namespace sdtune::train {

// A GPU that is there and not used; a GPU with less memory than the run's preset needs, or without instructions for the
// run's number format; mixed_precision: auto on a CPU of a kind that no table knows; more threads on a CPU than a quota
// allows cores. `recorded`: the format of the checkpoint that the run resumes, "" for none.
std::vector<Problem> machine_warnings(const TrainConfig& config, const std::string& recorded = "");

// The second one, for a GPU of so many bytes. Unset where the preset's needs are not known, or the run sets options
// that decide them itself (train/config/preset_memory.h).
std::optional<Problem> memory_warning(const TrainConfig& config, std::uint64_t memory_bytes);

// The third one: bf16 on a GPU below compute capability 8.0, asked for or `recorded`.
std::optional<Problem> format_warning(const TrainConfig& config, const std::string& recorded,
                                      const model::CudaDeviceInfo& gpu);

// The last one: LibTorch counts the host's cores in a container, and its threads wait for each other (docs/cpu.md).
std::optional<Problem> threads_warning(std::int64_t threads, std::optional<double> quota);

}  // namespace sdtune::train
