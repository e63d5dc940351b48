#include "model/base/signal_stack.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

namespace sdtune {
namespace {

// What a handler's frame takes depends on the processor's registers (AMX: 8 KiB of tiles); the system knows.
std::size_t bytes_for_handlers() {
  constexpr long kEnough = 64 * 1024;
  return static_cast<std::size_t>(std::max(kEnough, sysconf(_SC_SIGSTKSZ)));
}

}  // namespace

SignalStack::SignalStack() {
  stack_t old = {};
  if (sigaltstack(nullptr, &old) != 0 || (old.ss_flags & SS_DISABLE) == 0) return;
  memory_.resize(bytes_for_handlers());
  stack_t own = {};
  own.ss_sp = memory_.data();
  own.ss_size = memory_.size();
  if (sigaltstack(&own, nullptr) != 0) memory_.clear();
}

SignalStack::~SignalStack() {
  if (memory_.empty()) return;
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}

}  // namespace sdtune
