// A file's bytes in the address space, read-only.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "model/files/read_pieces.h"

namespace sdtune {

// Throws WeightError naming the path when it is absent, unreadable, or not a regular file (a folder, FIFO or device is
// never opened for reading).
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path, PageCache cache = PageCache::kKeep);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }
  // Takes these bytes (of bytes()) out of the process's memory until they are read again, and with kDrop out of the
  // page cache too. A model that has been copied out would else count twice.
  void release(std::span<const std::byte> part) const;

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
  int to_drop_ = -1;  // the file, where it is large and to be dropped
};

}  // namespace sdtune
