// The request to stop, on which all ranks agree while they train: it travels with the numbers that each step sums
// anyway, and no rank waits for it.
#pragma once

#include <torch/types.h>

#include <deque>
#include <functional>
#include <utility>

#include "model/base/stop_flag.h"
#include "train/dist/process_group.h"

namespace sdtune::train {

// In the place of a signal: the run's budget is spent. It ends the run with its result, and any signal comes first.
inline constexpr int kBudgetSpent = 1001;

class StopAgreement {
 public:
  // Both must outlive this. `device` is where the numbers are.
  StopAgreement(ProcessGroup& group, const StopFlag& stop, torch::Device device)
      : group_(group), stop_(stop), device_(device) {}

  // This rank asks for kBudgetSpent once `is_spent` is true.
  void limit(std::function<bool()> is_spent) { is_spent_ = std::move(is_spent); }

  // The sum of `numbers` [n] float32 over the ranks; once a step, on every rank. Throws PeerLostError.
  torch::Tensor sum(const torch::Tensor& numbers);

  // After a step: the signal that a rank had received by the sum of this step, or on a GPU by that of two steps before,
  // which the device is known to have ended; 0 for none. Where several did, the first rank's. The same on every rank.
  int agreed();

  // The same of what the ranks say now: it waits for all of them.
  int agreed_now();

 private:
  int own_vote() const;

  ProcessGroup& group_;
  const StopFlag& stop_;
  torch::Device device_;
  std::function<bool()> is_spent_;
  std::deque<torch::Tensor> votes_;  // of the steps not read yet: [ranks] on the host
};

}  // namespace sdtune::train
