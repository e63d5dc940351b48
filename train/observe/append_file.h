// A log that grows by whole records and may never stop a training run.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace sdtune::train {

// Opens with O_APPEND and writes each record in one write(), so that a kill leaves whole records. Logs are not worth an
// fsync; what must survive a power loss is in the checkpoint.
class AppendFile {
 public:
  AppendFile() = default;
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Creates the file where it is absent. Returns why it failed; empty when it did not.
  std::string open(const std::filesystem::path& path);
  // Appends all of `record`, or nothing: what a full disk left behind is cut off. Returns why it failed, empty when it
  // did not. Without an open file it does nothing.
  std::string append(std::string_view record);

 private:
  int descriptor_ = -1;
};

}  // namespace sdtune::train
