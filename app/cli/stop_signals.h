// SIGINT and SIGTERM: the first one asks the work to stop at the next safe point, the second one ends the process at
// once.
#pragma once

#include <atomic>

namespace sdtune::app {

// A closed pipe (`| head`) becomes an error of the write, not the end of a training run.
void ignore_closed_pipes();

// Installs the handlers, for work that looks at the flag. `on_stop` (may be null, must be async-signal-safe) is called
// with the first signal.
void install_stop_signals(void (*on_stop)(int signal) = nullptr);

// Set by the handlers.
std::atomic<bool>& stop_requested();

// SIGINT or SIGTERM, or 0 when none came.
int stop_signal();

// 130 or 143 when a signal came, else `code`.
int exit_code_after_stop(int code);

}  // namespace sdtune::app
