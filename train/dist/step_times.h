// How long each rank computed and waited in a step: who is slow, and what the network costs. A rank's times travel with
// the numbers that a later step sums anyway, so nothing waits for them.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "model/core/timestamp.h"
#include "train/dist/process_group.h"

namespace sdtune::train {

class StepTimes {
 public:
  // `group` must outlive this. `device` is the one that the steps run on.
  StepTimes(ProcessGroup& group, torch::Device device);

  void begin_step();
  void end_step();

  // [2 x ranks] float32 on the device, to be summed over the ranks: seconds that each rank computed, then seconds that
  // it waited for collectives. Of the newest step that is over, on a GPU some steps ago; 0 where there is none.
  torch::Tensor own();

 private:
  struct Step {
    model::Timestamp begin, end;
    std::vector<CollectiveWait> waits;
  };
  struct Seconds {
    double computing = 0, waiting = 0;
  };
  static std::optional<Seconds> seconds_of(const Step& step);

  ProcessGroup& group_;
  torch::Device device_;
  std::optional<model::Timestamp> begin_;
  std::deque<Step> steps_;  // not over yet, the oldest first
  Seconds newest_;
};

// What the times of all ranks say of a step.
struct RankBalance {
  // Of the slowest rank's step, spent waiting for collectives: a faster rank waits for the slowest too.
  double communication_share = 0;
  double straggler_ratio = 1;     // the slowest rank's computing time over the mean of all; 1: all are alike
  std::int64_t slowest_rank = 0;  // the one that computed longest
};

// times: the sum of StepTimes::own() over the ranks. Unset while a rank has none.
std::optional<RankBalance> balance_of(std::span<const double> times);

}  // namespace sdtune::train
