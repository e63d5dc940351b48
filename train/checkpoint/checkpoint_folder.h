// The names inside checkpoints/: step-00000100 is a checkpoint once its manifest is there, step-00000100.tmp is one
// that is being written or was left half-written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "model/base/error.h"
#include "model/files/file_system.h"

namespace sdtune::train {

inline constexpr const char* kWeightsFile = "weights.safetensors";      // float32 masters by parameter name
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";  // states by parameter name
inline constexpr const char* kAveragesFile = "averages.safetensors";    // float32 averages by parameter name, if kept
inline constexpr const char* kStateFile = "state.json";                 // RunState

struct CheckpointFolder {
  std::int64_t step = 0;
  std::filesystem::path path;
};

std::filesystem::path checkpoint_path(const std::filesystem::path& checkpoints, std::int64_t step);
std::filesystem::path temporary_path(const std::filesystem::path& checkpoint);

// The folders named like a checkpoint, newest first; empty when there is no such folder. Says nothing of their content.
std::vector<CheckpointFolder> list_checkpoints(const std::filesystem::path& checkpoints);
// Folders that a killed save left behind.
std::vector<std::filesystem::path> list_unfinished(const std::filesystem::path& checkpoints);

// Deletes the oldest checkpoints beyond `limit` (unset: none), and what killed saves left behind. Called only after the
// checkpoint of `verified_step` was read back: that one always stays, and so does everything newer. Returns why the
// first of those that could not be deleted is still there; the next call tries again.
std::optional<Problem> remove_old_checkpoints(FileSystem& files, const std::filesystem::path& checkpoints,
                                              std::int64_t verified_step, std::optional<std::int64_t> limit);

}  // namespace sdtune::train
