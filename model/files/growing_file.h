// A file that is written in more than one go: what is there already is kept.
#pragma once

#include <filesystem>
#include <memory>

#include "model/files/file_system.h"

namespace sdtune {

// Opens or makes the file, to write behind its end. Throws StorageError.
std::unique_ptr<OutputFile> append_to_file(const std::filesystem::path& path);

// Makes `link` a symbolic link with the text `target`, in place of a file or link of that name. Throws StorageError.
void replace_link(const std::filesystem::path& target, const std::filesystem::path& link);

}  // namespace sdtune
