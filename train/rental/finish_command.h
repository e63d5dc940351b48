// --on-finish: a command of the user at the end of a run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "model/base/error.h"

namespace sdtune::train {

struct RunOutcome {
  int exit_code = 0;
  std::string cause;             // why it ended, in words
  std::filesystem::path folder;  // of the run, which need not exist
};

// Runs `command` by /bin/sh and waits for it: with SDTUNE_EXIT_CODE, SDTUNE_CAUSE and SDTUNE_RUN (an absolute path)
// beside this process's environment, and with the signals' usual meanings. An empty one does nothing. Returns what
// went wrong, as a warning.
std::optional<Problem> run_finish_command(const std::string& command, const RunOutcome& outcome);

}  // namespace sdtune::train
