// JSON files.
#pragma once

#include <filesystem>

#include "model/base/json.h"

namespace sdtune {

// parse_json of a file of at most 256 MiB. Throws WeightError also when it cannot be read.
Json read_json(const std::filesystem::path& path);

}  // namespace sdtune
