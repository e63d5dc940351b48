// Files of one JSON object a line, as runs write them.
#pragma once

#include <filesystem>
#include <vector>

#include "model/base/json.h"

namespace sdtune::train {

// The objects of a file, without lines that are none (a kill may cut the last one); none where there is no file.
std::vector<Json> read_json_lines(const std::filesystem::path& file);

}  // namespace sdtune::train
