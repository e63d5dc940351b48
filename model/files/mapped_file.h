// A file's bytes in the address space, read-only.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace sdtune {

// Throws WeightError naming the path when it is absent, unreadable, or not a regular file (a folder, FIFO or device is
// never opened for reading).
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }
  // Takes these bytes (of bytes()) out of the process's memory until they are read again. A model that has been copied
  // out would else count twice.
  void release(std::span<const std::byte> part) const;

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

}  // namespace sdtune
