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

// Starts options.nproc times this program with those words, and again as long as a restart may help. The ranks share
// `cores`. Returns the exit code of the first cause. Throws ConfigError and StorageError when no rank can be started.
int launch_ranks(const LaunchOptions& options, const WordsOfAttempt& words, std::int64_t cores);

}  // namespace sdtune::app
