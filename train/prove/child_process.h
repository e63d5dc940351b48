// Programs that a part runs: one, or several at once (ranks), with a time limit.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "model/base/stop_flag.h"

namespace sdtune::train {

struct Child {
  std::vector<std::string> words;                                // the program's path first
  std::vector<std::pair<std::string, std::string>> environment;  // over this process's own
  std::filesystem::path log;                                     // gets its output and its errors, and is made anew
  std::filesystem::path output = {};                             // gets its output instead, where it is not empty
};

struct ChildrenEnd {
  // Of each: its exit code, 128 + N where signal N ended it, 1 where the kernel does not tell, since SIGCHLD is
  // ignored.
  std::vector<int> codes;
  bool out_of_time = false;
  bool stopped = false;  // by `stop`
  double seconds = 0;

  bool all_done() const;
};

// Starts them and waits for all. When the limit is over, or `stop` asks, each gets SIGTERM, and SIGKILL where it has
// not ended `patience` later. They also get SIGTERM when this process dies. Each has a process group of its own, so
// that Ctrl-C in a terminal reaches this process alone. Throws StorageError where one cannot be started.
ChildrenEnd run_children(const std::vector<Child>& children, std::chrono::duration<double> limit, const StopFlag& stop,
                         std::chrono::duration<double> patience = std::chrono::seconds(120));

// The last lines of a log that say something, for the reason of a failure: at most 300 characters in one line.
std::string last_words(const std::filesystem::path& log);

}  // namespace sdtune::train
