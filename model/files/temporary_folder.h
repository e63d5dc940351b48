// A folder for files that are not kept.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace sdtune {

// A folder beside the one that a real run would have, on the same disk, that is gone with the object. train() makes it.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::filesystem::path& beside)
      : path_(beside.string() + ".probe-" + std::to_string(getpid())) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace sdtune
