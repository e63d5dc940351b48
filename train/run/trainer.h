// The loop of a run: steps, checkpoints, validation, stopping. No maths.
#pragma once

#include <optional>
#include <vector>

#include "train/checkpoint/checkpoint_writer.h"
#include "train/observe/observer.h"
#include "train/run/identity_watch.h"
#include "train/run/run.h"
#include "train/run/step_log.h"
#include "train/run/train.h"

namespace sdtune::train {

class Trainer {
 public:
  Trainer(Run& run, const std::vector<Observer*>& observers, const StopFlag& stop);

  // Trains from run.first_step to run.total_steps, or to the end of progress, and exports the model, or saves and
  // returns when asked to stop.
  TrainResult train();

 private:
  bool is_saved_at(std::int64_t done) const;
  bool is_validated_at(std::int64_t done) const;
  // Whether an earlier attempt was stopped before it had drawn the pictures of the step that this one goes on from.
  // They depend on weights and seeds only, so they are drawn now as they would have been then.
  bool lacks_look() const;
  void update_average(std::int64_t done);
  void save(std::int64_t done);
  void write_checkpoint(std::int64_t done);
  void validate(std::int64_t done);
  void look_at_identity(std::int64_t done);
  // Looks that an earlier attempt was stopped before.
  void catch_up();
  TrainResult stopped(std::int64_t done, int signal);
  TrainResult finished(std::int64_t done);

  Run& run_;
  const std::vector<Observer*>& observers_;
  const StopFlag& stop_;
  CheckpointWriter writer_;
  StepLog log_;
  std::optional<IdentityWatch> watch_;  // unset without identity_steps
};

}  // namespace sdtune::train
