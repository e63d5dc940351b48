#include "model/files/atomic_folder.h"

#include <string>
#include <vector>

#include "model/base/error.h"

namespace sdtune {
namespace {

namespace fs = std::filesystem;

// "folder/" and "folder" are the same folder; only the second has a name.
fs::path without_trailing_slash(const fs::path& folder) {
  return folder.has_filename() ? folder : folder.parent_path();
}

fs::path beside(const fs::path& folder, const char* suffix) {
  std::string name = ".";
  name.append(folder.filename().string()).append(suffix);
  return folder.parent_path() / name;
}

// No file system replaces one folder by another in a single step, so the old one steps aside first.
void put_in_place(FileSystem& files, const fs::path& written, const fs::path& folder) {
  const fs::path parent = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  const fs::path old = beside(folder, ".old");
  if (!fs::exists(folder)) {
    files.rename(written, folder);
    files.sync_directory(parent);
    // Of a replacement that was killed; until now it was all there was.
    if (fs::exists(old)) remove_tree_quietly(files, old);
    return;
  }
  if (fs::exists(old)) files.remove_tree(old);
  files.rename(folder, old);
  try {
    files.rename(written, folder);
  } catch (const StorageError&) {
    files.rename(old, folder);
    throw;
  }
  files.sync_directory(parent);
  remove_tree_quietly(files, old);  // NFS keeps it while another program reads a file in it
}

}  // namespace

std::vector<fs::path> left_by_killed_writings(const fs::path& folder) {
  const fs::path target = without_trailing_slash(folder);
  return {beside(target, ".partial"), beside(target, ".old")};
}

void remove_tree_quietly(FileSystem& files, const fs::path& folder) {
  try {
    files.remove_tree(folder);
  } catch (const StorageError&) {
  }
}

void write_folder_atomically(FileSystem& files, const fs::path& folder,
                             const std::function<void(const fs::path& partial)>& write) {
  const fs::path target = without_trailing_slash(folder);
  const fs::path partial = beside(target, ".partial");
  if (fs::exists(partial)) files.remove_tree(partial);  // of a writing that was killed
  try {
    files.create_directories(partial);
    write(partial);
    put_in_place(files, partial, target);
  } catch (const Error&) {
    remove_tree_quietly(files, partial);
    throw;
  }
}

}  // namespace sdtune
