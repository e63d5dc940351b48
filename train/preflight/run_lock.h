// One process a run folder: a lock that the kernel gives up when its holder dies, so none is ever stale.
#pragma once

#include <filesystem>
#include <optional>

#include "model/base/error.h"

namespace sdtune::train {

class RunLock {
 public:
  // Takes the lock file (created if absent). Throws ConfigError naming process and host of the run that holds it, and
  // StorageError where the disk has no locks.
  explicit RunLock(const std::filesystem::path& file);
  ~RunLock();
  // What the constructor would throw where another process holds the lock, or the disk has none. Does not keep it, and
  // creates no file: of a folder in which no run was begun it knows nothing.
  static std::optional<Problem> holder(const std::filesystem::path& file);

  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int descriptor_ = -1;
  int holder_ = 0;  // the process that took it
};

}  // namespace sdtune::train
