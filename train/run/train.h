// A training run from configuration to result: what `sdtune train` and sdtune.train() call.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "model/base/error.h"
#include "train/config/train_config.h"
#include "train/observe/observer.h"

namespace sdtune::train {

// Asks a run to save and stop. Set from a signal handler or another thread, read between steps, also those of sampling.
class StopFlag {
 public:
  // `signal` is SIGINT or SIGTERM; the first request counts. Async-signal-safe.
  void request(int signal) {
    int none = 0;
    signal_.compare_exchange_strong(none, signal);
    asked_.store(true);
  }
  // The signal asked for, 0 for none.
  int signal() const { return signal_.load(std::memory_order_relaxed); }
  // Whether there is one, in the form in which sampling takes it.
  const std::atomic<bool>& asked() const { return asked_; }

 private:
  static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);
  std::atomic<int> signal_{0};
  std::atomic<bool> asked_{false};
};

struct TrainResult {
  ExitCode code = ExitCode::kDone;   // kDone; kInterrupted or kTerminated when the flag stopped it, state saved
  std::int64_t step = 0;             // optimizer steps done
  std::int64_t model_step = 0;       // the step whose weights model_path holds: `step`, or the best one; 0 unless kDone
  std::filesystem::path output;      // the run folder
  std::filesystem::path model_path;  // the result, a diffusers folder; empty unless kDone
  std::filesystem::path checkpoint;  // the newest checkpoint; empty when none was written
};

// Runs `config` to its end or until `stop` asks. In a process that torchrun started it is one rank of the run; only
// rank 0 calls the observers. Throws the types of model/base/error.h: what find_problems (preflight.h) reports before
// anything is written, later CheckpointError, StorageError, OutOfMemoryError, NonFiniteError, PeerLostError. A failure
// after the start leaves last_error.json in the run folder.
TrainResult train(const TrainConfig& config, const std::vector<Observer*>& observers, StopFlag& stop);

}  // namespace sdtune::train
