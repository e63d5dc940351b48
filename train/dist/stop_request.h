// Stopping: before the first step, where there is nothing to save yet, and later, when all ranks must agree.
#pragma once

#include <string>

#include "model/base/stop_flag.h"
#include "train/dist/process_group.h"

namespace sdtune::train {

// Thrown between two pieces of preparation, caught by train(): not a failure, and no std::exception, so that it is
// not taken for one.
struct StopRequest {
  int signal = 0;
};

inline void stop_if_requested(const StopFlag& stop) {
  if (stop.signal() != 0) throw StopRequest{stop.signal()};
}

// The signal that any rank received, 0 for none: the same answer on every rank, all of which must call it. It waits for
// all of them; between steps StopAgreement does not.
inline int agreed_signal(ProcessGroup& group, const StopFlag& stop) {
  if (group.world_size() == 1) return stop.signal();
  for (const std::string& signal : group.gather_text(std::to_string(stop.signal()))) {
    if (signal != "0") return std::stoi(signal);
  }
  return 0;
}

}  // namespace sdtune::train
