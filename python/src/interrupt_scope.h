// Ctrl-C during a long call. Python's own handler only notes the signal until the interpreter runs again, which a call
// without the interpreter lock puts off to its end; so the scope takes the signal itself.
#pragma once

#include <signal.h>

#include <atomic>
#include <optional>

#include "model/base/signal_stack.h"
#include "train/run/train.h"

namespace sdtune::python {

// While it lives, SIGINT sets `flag` or asks `stop`, and SIGTERM does so too unless Python code has set a handler of
// its own. Only on Python's main thread, and one at a time; elsewhere it does nothing, as Python delivers signals there
// alone. A signal that is ignored stays ignored. Made and destroyed under the interpreter lock.
class InterruptScope {
 public:
  explicit InterruptScope(std::atomic<bool>& flag);
  explicit InterruptScope(StopFlag& stop);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  // Gives the signals back to Python; for one that came meanwhile, does what Python does: KeyboardInterrupt (or the
  // handler that the program set) for SIGINT, SystemExit(143) for SIGTERM. Needs the interpreter lock.
  void finish();

 private:
  void install();
  void restore();

  bool installed_ = false;
  std::optional<SignalStack> stack_;
  std::optional<struct sigaction> old_interrupt_;
  std::optional<struct sigaction> old_terminate_;
};

}  // namespace sdtune::python
