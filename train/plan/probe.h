// How long a run will take on this machine, by doing its beginning.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "train/observe/observer.h"
#include "train/plan/run_plan.h"
#include "train/run/train.h"

namespace sdtune::train {

// Seconds.
struct ProbedTimes {
  double start = 0;          // loading, encoding, whatever comes before the first step but class pictures
  double class_picture = 0;  // each; 0: none are drawn
  double step = 0;           // each optimizer step, the first left out
  double checkpoint = 0;     // each
  double finish = 0;         // exporting the model
  std::int64_t timed_steps = 0;
  std::int64_t peak_bytes = 0;  // of the device, or of the process on a CPU

  // All validation pictures and looks at likeness of the planned run: by its operations, at the pace of class pictures,
  // or, where none are drawn, of steps.
  double looks(const RunPlan& plan) const;
  // Of the planned run, checkpoints counted.
  double total(const RunPlan& plan) const;
};

// Trains for a few steps, as many as the plan's operations make worth timing, with just the class pictures that they
// need. Everything is written to `folder`, which the caller removes. Unset when `stop` ended it. Throws what train()
// throws.
std::optional<ProbedTimes> probe_run(const RunPlan& plan, const std::filesystem::path& folder,
                                     const std::vector<Observer*>& observers, StopFlag& stop);

}  // namespace sdtune::train
