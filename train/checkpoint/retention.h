// Which checkpoints go once a new one is safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "model/base/file_system.h"

namespace sdtune::train {

// Deletes the oldest checkpoints beyond `limit` (unset: none), and what killed saves left behind. Called only after the
// checkpoint of `verified_step` was read back: that one always stays, and so does everything newer.
void remove_old_checkpoints(FileSystem& files, const std::filesystem::path& checkpoints, std::int64_t verified_step,
                            std::optional<std::int64_t> limit);

}  // namespace sdtune::train
