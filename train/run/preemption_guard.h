// The watch for preemption as a run has it: what it finds is told between steps, and whether a save fits the grace.
#pragma once

#include <optional>
#include <string>

#include "model/base/stop_flag.h"
#include "train/config/rental_options.h"
#include "train/observe/observer.h"
#include "train/observe/step_lines.h"
#include "train/rental/preemption_watch.h"

namespace sdtune::train {

class PreemptionGuard : public Observer {
 public:
  // Watches from now on where the options name a cloud and `watches` is true: one process of a machine does.
  PreemptionGuard(const RentalOptions& options, bool watches, StopFlag& stop, Warn warn);

  bool watches() const { return watch_.has_value(); }
  std::string notice() const { return watch_ ? watch_->notice() : ""; }  // empty: none
  // Warns, once, when a checkpoint that takes `save_seconds` may be late: the cloud is asked now and then, and a step
  // must end first. `how` says where the time is from.
  void expect_save(double save_seconds, const std::string& how);

  void on_step(const StepEvent& event) override;
  void on_checkpoint(const CheckpointEvent& event) override;
  void on_validation(const ValidationEvent&) override { is_paused_ = true; }  // which a stop cuts short
  void on_identity(const IdentityEvent&) override { is_paused_ = true; }

 private:
  std::optional<PreemptionWatch> watch_;
  std::string cloud_;
  Warn warn_;
  double last_elapsed_ = 0, step_seconds_ = 0;
  bool is_paused_ = false;  // the time up to the next step is not the step's alone
  bool warned_ = false;
};

}  // namespace sdtune::train
