// Signals and streams that a process finds. SIGINT, SIGTERM and SIGUSR1 (which means SIGTERM): the first one asks the
// work to stop at the next safe point, the second one ends the process at once. Of a rank, one by its launcher and one
// by anybody else are together the first; one that sdtune launch queues because another rank failed (kOtherRankFailed)
// is never the second.
#pragma once

#include "model/base/stop_flag.h"

namespace sdtune::app {

// A standard stream that is closed (`2>&-`) becomes /dev/null. Its number would be that of the next file that is
// opened, a checkpoint for example, and what is printed would go in there.
void open_closed_streams();

// A closed pipe (`| head`) becomes an error of the write, not the end of a training run.
void ignore_closed_pipes();

// An ignored SIGCHLD, which a shell (trap '' CHLD) hands down, lets the kernel drop how children ended.
void take_ends_of_children();

// The flag of this process, which the handlers set.
StopFlag& stop_flag();

// Installs the handlers, for work that reads the flag, and returns stop_flag().
StopFlag& install_stop_signals();

}  // namespace sdtune::app
