// A caption of one photo: the .txt file of the same name, or a text that came with it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace sdtune::train {

// UTF-8, without a byte order mark, trimmed, line breaks as spaces. Throws DataError naming the file when it is empty,
// is not UTF-8, or is longer than 64 KiB.
std::string read_caption(const std::filesystem::path& path);

// The same of a text; `where` goes into the error.
std::string clean_caption(std::string_view text, const std::string& where);

}  // namespace sdtune::train
