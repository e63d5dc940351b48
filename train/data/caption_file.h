// A caption of one photo: the .txt file of the same name.
#pragma once

#include <filesystem>
#include <string>

namespace sdtune::train {

// UTF-8, without a byte order mark, trimmed, line breaks as spaces. Throws DataError naming the file when it is empty,
// is not UTF-8, or is longer than 64 KiB.
std::string read_caption(const std::filesystem::path& path);

}  // namespace sdtune::train
