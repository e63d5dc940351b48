// A log of JSON lines that each say which step they belong to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "model/base/json.h"
#include "model/files/file_system.h"
#include "train/observe/append_file.h"
#include "train/observe/observer.h"

namespace sdtune::train {

// Told once when a log cannot be written; the run continues.
using Warn = std::function<void(const Problem&)>;

// Calls `use` with each whole line of a log, without its newline, whatever the log's size: a long run's is larger than
// read_file takes. A line far longer than ours is passed over, as are the zeros that some disks leave after a loss of
// power. Throws DataError naming the path when it cannot be read.
void for_each_line(const std::filesystem::path& path, const std::function<void(std::string_view)>& use);

// Whether the file has a whole line of that step.
bool has_step_line(const std::filesystem::path& path, std::int64_t step);

class StepLines {
 public:
  // `warn` may be empty.
  StepLines(FileSystem& files, Warn warn) : files_(files), warn_(std::move(warn)) {}

  // Drops the lines of steps above `step`, which will be done again, and a line that a kill cut short.
  void open(const std::filesystem::path& path, std::int64_t step);
  void append(const Json& line);

 private:
  void drop_lines_after(std::int64_t step);
  void warn_once(const std::string& cause);

  FileSystem& files_;
  Warn warn_;
  bool warned_ = false;
  std::filesystem::path path_;
  AppendFile file_;
};

}  // namespace sdtune::train
