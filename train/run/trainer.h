// The loop of a run: steps, checkpoints, validation, stopping. No maths.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/checkpoint_writer.h"
#include "train/dist/shared_failure.h"
#include "train/identity/identity_evaluation.h"
#include "train/observe/observer.h"
#include "train/profile/step_profiler.h"
#include "train/run/background_save.h"
#include "train/run/run.h"
#include "train/run/step_log.h"
#include "train/run/train.h"

namespace sdtune::train {

class Trainer {
 public:
  Trainer(Run& run, const std::vector<Observer*>& observers, const PortraitReaderSource& portrait_readers,
          const StopFlag& stop);

  // Trains from run.first_step to run.total_steps, or to the end of progress, and exports the model, or saves and
  // returns when asked to stop.
  TrainResult train();

 private:
  class SaveOnException;

  bool is_saved_at(std::int64_t done) const;
  bool is_validated_at(std::int64_t done) const;
  // Whether an earlier attempt was stopped before it had validated the step that this one resumes from. The images
  // depend on weights and seeds only, so they are generated now as they would have been then.
  bool lacks_validation() const;
  void update_average(std::int64_t done);
  void tell_profile(const std::optional<ProfileEvent>& event);
  void save(std::int64_t done);
  // As save(), but a GPU trains on while the first rank writes, where it can.
  void save_beside_steps(std::int64_t done);
  void write_checkpoint(std::int64_t done);
  // After a checkpoint was written: that an old one could not be removed.
  void warn_of_old_checkpoint();
  // Tells of a checkpoint that was begun beside the steps, once it is written. Throws what writing threw.
  void take_saved();
  // The same where the run goes on, or is over, even if writing failed: then warns, with `hint`.
  void take_saved_or_warn(const std::string& hint);
  void validate(std::int64_t done);
  void evaluate_identity(std::int64_t done);
  // After a validation or an evaluation that failed: saves a checkpoint and warns. Rethrows before the first step.
  void continue_without(const std::string& what, std::int64_t done, const SharedFailure& failure);
  // Runs what only reads the weights that every rank has by then, and waits for all ranks. What was trained is not lost
  // with it: an exception on any of them finds a checkpoint saved.
  void read_weights(std::int64_t done, const std::function<void()>& use);
  // With shards, by all ranks: whether it failed on any of them, and then a checkpoint.
  void save_after_failure(std::int64_t done, bool failed);
  // While one lives, every part of the model is on the device, and its weights are the averages, if there are any.
  struct ReadableModel {
    std::unique_ptr<AveragedWeights> averaged;
    std::unique_ptr<RestingParts::OnDevice> parts;
  };
  // By all ranks. Returns what kept it from being made on any of them; `readable` may then have a part of it.
  std::optional<SharedFailure> make_readable(ReadableModel& readable);
  // By the first rank alone, as well as it can.
  void save_before_failing(std::int64_t done) noexcept;
  // Validation and evaluation that an earlier attempt was stopped before.
  void catch_up();
  TrainResult stopped(std::int64_t done, int signal);
  // The model of `done`, which may be before the last step, where the budget is spent.
  TrainResult finished(std::int64_t done);

  Run& run_;
  const std::vector<Observer*>& observers_;
  const StopFlag& stop_;
  CheckpointWriter writer_;
  BackgroundSave background_;
  double copy_seconds_ = 0;  // that the steps waited for what background_ writes
  StepLog log_;
  StepProfiler profiler_;
  std::optional<IdentityEvaluation> identity_;  // unset without identity_steps
};

}  // namespace sdtune::train
