// Stopping before the first step, where there is nothing to save yet.
#pragma once

#include <csignal>

#include "train/run/train.h"

namespace sdtune::train {

// Thrown between two pieces of preparation, caught by train(): not a failure, and no std::exception, so that nobody
// takes it for one.
struct StopRequest {
  int signal = 0;
};

inline ExitCode exit_code_of(int signal) {
  return signal == SIGTERM ? ExitCode::kTerminated : ExitCode::kInterrupted;
}

inline void stop_if_asked(const StopFlag& stop) {
  if (stop.signal() != 0) throw StopRequest{stop.signal()};
}

}  // namespace sdtune::train
