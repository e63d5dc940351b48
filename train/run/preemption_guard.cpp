#include "train/run/preemption_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sdtune::train {

PreemptionGuard::PreemptionGuard(const RentalOptions& options, bool watches, StopFlag& stop, Warn warn)
    : cloud_(options.preemption), warn_(std::move(warn)) {
  if (cloud_ == "none" || !watches) return;
  watch_.emplace(make_preemption_source(cloud_, parse_metadata_address(options.preemption_address)), stop);
}

void PreemptionGuard::expect_save(double save_seconds, const std::string& how) {
  if (!watch_ || warned_) return;
  const double needed = watch_->interval() + step_seconds_ + save_seconds;
  if (needed <= watch_->grace()) return;
  warned_ = true;
  warn_({"preemption",
         fmt::format("a checkpoint takes {:.1f} s ({}), and with the step before it and the time between two questions "
                     "that is more than the {:.0f} s which {} gives",
                     save_seconds, how, watch_->grace(), cloud_),
         "a faster disk, or a smaller --checkpointing-steps: what is not saved is done again"});
}

void PreemptionGuard::on_step(const StepEvent& event) {
  if (!watch_) return;
  if (last_elapsed_ > 0 && !std::exchange(is_paused_, false)) {
    step_seconds_ = std::max(step_seconds_, event.elapsed - last_elapsed_);
  }
  last_elapsed_ = event.elapsed;
  const std::string failure = watch_->take_failure();
  if (failure.empty()) return;
  warn_({"preemption", "the metadata service of " + cloud_ + " did not answer: " + failure,
         "it is asked again, and training continues"});
}

void PreemptionGuard::on_checkpoint(const CheckpointEvent& event) {
  is_paused_ = true;
  // One that is being written comes before that of the last step.
  const double seconds = event.waited < event.seconds ? 2 * event.seconds : event.seconds;
  expect_save(seconds, "measured at step " + std::to_string(event.step));
}

}  // namespace sdtune::train
