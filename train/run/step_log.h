// From numbers on the device to events. They are copied to the host behind the step, and told of once they are there:
// no step waits for them.
#pragma once

#include <torch/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "model/core/device_copy.h"
#include "train/observe/observer.h"
#include "train/precision/non_finite_guard.h"
#include "train/run/run.h"

namespace sdtune::train {

class StepLog {
 public:
  StepLog(const Run& run, const std::vector<Observer*>& observers);

  // The first step begins now. What came before it, as a validation of the base, counts in no time.
  void begin();
  // Of train_step(step). On a CPU the event comes at once, on a GPU one or a few steps later.
  void push(std::uint64_t step, const torch::Tensor& numbers);
  // Tells of all that is pending. Call it before a checkpoint, a validation, and at the end. Throws PeerLostError where
  // the device waits for a peer that is lost.
  void flush();
  // The time since the last step was not spent on steps: images_per_s and the estimate leave it out.
  void leave_out_pause();
  // Throws NonFiniteError when too many steps in a row were discarded.
  void check_finite() const;

 private:
  struct Pace {
    std::int64_t step = 0;  // 0: not there yet
    double seconds = 0;     // spent on steps so far
  };
  struct Pending {
    std::uint64_t step;
    model::HostCopy numbers;
    double time;     // s since 1970, when the host was through with it: on a GPU it was queued then
    double elapsed;  // s since the first step of this attempt began, likewise
    std::optional<double> overlapped_share;
  };

  double seconds_since_start() const;
  void begin_interval();
  void tell_of_first();
  void estimate_the_rest();
  StepEvent event_of(const Pending& pending);
  void add_ranks(StepEvent& event, const Pending& pending) const;

  const Run& run_;
  const std::vector<Observer*>& observers_;
  NonFiniteGuard guard_;
  std::deque<Pending> pending_;
  std::optional<model::HostCopy> previous_;  // of the step before or, on a GPU, the end of a pause; unset on a CPU then
  std::chrono::steady_clock::time_point start_;
  double last_elapsed_ = 0;
  double last_flush_ = 0;  // s since start_
  double paused_ = 0;      // s of the pauses so far
  Pace warm_up_;           // at the first flush; the steps after it are the ones that the estimate is made from
  bool estimated_ = false;
  bool last_loss_finite_ = true;
  std::int64_t last_step_ = 0;
};

}  // namespace sdtune::train
