// The time and the floating-point operations of LibTorch's operators while they run, summed by name.
#pragma once

#include <ATen/record_function.h>

#include <memory>
#include <vector>

#include "train/observe/profile_event.h"

namespace sdtune::train {

// Watches every thread while it lives. One at a time in a process. An operator of known floating-point operations
// (convolutions, products, attention) has the time of what it calls; others are without it.
class OperatorTotals {
 public:
  OperatorTotals();
  ~OperatorTotals();
  OperatorTotals(const OperatorTotals&) = delete;
  OperatorTotals& operator=(const OperatorTotals&) = delete;

  std::vector<OperatorTotal> operators() const;  // the longest first
  std::vector<PhaseTotal> phases() const;        // RECORD_USER_SCOPE, in the order in which they first ended

 private:
  class Sums;
  std::shared_ptr<Sums> sums_;
  at::CallbackHandle handle_;
};

}  // namespace sdtune::train
