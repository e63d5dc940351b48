// One process a run folder: a lock that the kernel gives up when its holder dies, so none is ever stale.
#pragma once

#include <filesystem>

namespace sdtune::train {

class RunLock {
 public:
  // Takes the lock file (created if absent). Throws ConfigError naming process and host of the run that holds it.
  explicit RunLock(const std::filesystem::path& file);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace sdtune::train
