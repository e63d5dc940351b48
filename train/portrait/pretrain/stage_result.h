// What a finished stage hands on to the next ones: its averaged weights in float32, a quarter of a checkpoint's bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "model/files/file_system.h"
#include "model/weights/safetensors_writer.h"
#include "train/checkpoint/run_state.h"

namespace sdtune::train::pretrain {

// Writes result.safetensors and then result.json, which says of which steps and settings it is, into the stage's
// folder. Throws StorageError.
void write_stage_result(FileSystem& files, const std::filesystem::path& folder, const ResumeFingerprint& identity,
                        std::int64_t steps, const model::NamedTensors& averages);

// Whether the folder has a result of that many steps; its content is not looked at.
bool has_stage_result(const std::filesystem::path& folder, std::int64_t steps);

// The result of stage `stage` into `averages`, by name; false: there is none. Throws ConfigError where it is of another
// identity, and CheckpointError where it is damaged or of other steps, from which only a checkpoint could go on.
bool load_stage_result(const std::filesystem::path& folder, const std::string& stage, const ResumeFingerprint& identity,
                       std::int64_t steps, const model::NamedTensors& averages);

}  // namespace sdtune::train::pretrain
