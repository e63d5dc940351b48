// A lock between processes, on a file.
#pragma once

#include <filesystem>

namespace sdtune::app {

// Held as long as the object lives. huggingface_hub takes the same lock on the same file, so the two never download one
// file at the same time into the same place.
class FileLock {
 public:
  // Waits for another holder, and says `notice` first where it is given. Throws StorageError where the file cannot be
  // made.
  explicit FileLock(const std::filesystem::path& path, const char* notice = nullptr);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace sdtune::app
