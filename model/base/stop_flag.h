// Asks long work to stop: set by a signal handler or another thread, read between steps.
#pragma once

#include <atomic>
#include <csignal>

#include "model/base/error.h"

namespace sdtune {

// In the place of a signal: the cloud takes the machine away soon.
inline constexpr int kPreemption = 1000;
// Likewise: sdtune launch stops this rank, because another one failed.
inline constexpr int kOtherRankFailed = 1002;
// Likewise: a callback of train() raised an exception.
inline constexpr int kCallbackFailed = 1003;

// 143 for SIGTERM and kPreemption, 138 for kOtherRankFailed, 130 for every other signal.
inline ExitCode exit_code_of(int signal) {
  if (signal == kOtherRankFailed) return ExitCode::kPeerLost;
  return signal == SIGTERM || signal == kPreemption ? ExitCode::kTerminated : ExitCode::kInterrupted;
}

// As run.json names it.
inline const char* cause_of(int signal) {
  if (signal == kPreemption) return "preemption";
  if (signal == kOtherRankFailed) return "sdtune launch, since another rank failed";
  if (signal == kCallbackFailed) return "an exception of a callback";
  return signal == SIGTERM ? "SIGTERM" : "SIGINT";
}

class StopFlag {
 public:
  // `signal` is SIGINT, SIGTERM or one of the above; the first request counts. Returns whether this was the first. A
  // preempted machine is shut down, and the first signal of that must not end a run that saves: it is a first one.
  // Async-signal-safe.
  bool request(int signal) {
    int before = 0;
    bool is_first = signal_.compare_exchange_strong(before, signal);
    if (!is_first && before == kPreemption && signal != kPreemption) {
      is_first = signal_.compare_exchange_strong(before, signal);
    }
    requested_.store(true);
    return is_first;
  }
  // The requested signal, 0 for none.
  int signal() const { return signal_.load(std::memory_order_relaxed); }
  // Whether there is a request, in the form in which image generation takes it.
  const std::atomic<bool>& requested() const { return requested_; }
  // 130, 138 or 143 after a request, else `code`.
  int exit_code_or(int code) const { return signal() == 0 ? code : static_cast<int>(exit_code_of(signal())); }

 private:
  static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
                "a signal handler may use only lock-free atomics");
  std::atomic<int> signal_{0};
  std::atomic<bool> requested_{false};
};

}  // namespace sdtune
