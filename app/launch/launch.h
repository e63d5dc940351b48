// Ranks of this machine, restarted where that may help.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/launch/launch_options.h"

namespace sdtune::app {

// The words of a rank's command line in attempt number `attempt`, from 0.
using WordsOfAttempt = std::function<std::vector<std::string>(std::int64_t attempt)>;

struct LaunchEnd {
  int code = 0;            // of the first cause
  std::string cause = {};  // in words; empty where no rank failed
  // Rank 0 left what follows the end of a run (notify, on_finish) to a restart, which does not come.
  bool is_untold = false;
};

// Starts options.nproc times this program with those words, and again as long as a restart may help. The ranks share
// `cores`. Throws ConfigError and StorageError when no rank can be started.
LaunchEnd launch_ranks(const LaunchOptions& options, const WordsOfAttempt& words, std::int64_t cores);

}  // namespace sdtune::app
