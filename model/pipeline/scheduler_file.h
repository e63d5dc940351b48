// scheduler/scheduler_config.json of a folder.
#pragma once

#include <filesystem>

#include "model/files/file_system.h"
#include "model/pipeline/bundle.h"

namespace sdtune::model {

// Writes folder/scheduler/scheduler_config.json of the bundle's scheduler. Throws StorageError.
void save_scheduler(FileSystem& files, const ModelBundle& bundle, const std::filesystem::path& folder);

// Gives the bundle the scheduler that the folder has; false when it has none. Throws WeightError for a file that names
// no class.
bool replace_scheduler(ModelBundle& bundle, const std::filesystem::path& folder);

}  // namespace sdtune::model
