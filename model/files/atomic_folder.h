// A folder that is there whole or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "model/files/file_system.h"

namespace sdtune {

// `write` fills the folder that it is given, hidden beside `folder`, and may check it; then that one takes the name. An
// existing folder of that name is replaced; killed between the two renames of a replacement, the old one is still there
// as ".NAME.old", until the next writing is done, and so it is where it cannot be removed. Whatever `write` throws
// comes through, with what was written removed and an existing folder as it was. Throws StorageError.
void write_folder_atomically(FileSystem& files, const std::filesystem::path& folder,
                             const std::function<void(const std::filesystem::path& partial)>& write);

// The names that a writing of `folder` has beside it, and leaves there where it is killed.
std::vector<std::filesystem::path> left_by_killed_writings(const std::filesystem::path& folder);

// Removes what a failed writing left: a full disk must not stay full of half a folder. Why the writing failed, or that
// it is done, is what matters, so a failure of this is nothing.
void remove_tree_quietly(FileSystem& files, const std::filesystem::path& folder);

}  // namespace sdtune
