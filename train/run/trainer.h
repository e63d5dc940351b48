// The loop of a run: steps, checkpoints, validation, stopping. No maths.
#pragma once

#include <vector>

#include "train/checkpoint/checkpoint_writer.h"
#include "train/observe/observer.h"
#include "train/run/run.h"
#include "train/run/step_log.h"
#include "train/run/train.h"

namespace sdtune::train {

class Trainer {
 public:
  Trainer(Run& run, const std::vector<Observer*>& observers, const StopFlag& stop);

  // Trains from run.first_step to run.total_steps and exports the model, or saves and returns when asked to stop.
  TrainResult train();

 private:
  bool is_due(std::int64_t done, std::int64_t every) const { return done % every == 0; }
  // The signal that any rank received, 0 for none: the same answer on every rank.
  int agreed_signal() const;
  void save(std::int64_t done);
  void validate(std::int64_t done);
  TrainResult stopped(std::int64_t done, int signal);
  TrainResult finished();

  Run& run_;
  const std::vector<Observer*>& observers_;
  const StopFlag& stop_;
  CheckpointWriter writer_;
  StepLog log_;
  bool draws_pictures_;
};

}  // namespace sdtune::train
