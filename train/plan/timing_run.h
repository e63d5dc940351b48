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
  double start = 0;        // loading, encoding, whatever comes before the first step but class images
  double class_image = 0;  // each; 0: none are generated
  double step = 0;         // each optimizer step, the first left out
  double checkpoint = 0;   // each
  double finish = 0;       // exporting the model
  std::int64_t timed_steps = 0;
  std::int64_t peak_bytes = 0;  // of the device, or of the process on a CPU

  // All images of validation and identity evaluation of the planned run: by its operations, at the pace of class
  // images or, where none are generated, of steps.
  double evaluation_images(const RunPlan& plan) const;
  // Of the planned run, checkpoints counted.
  double total(const RunPlan& plan) const;
};

// Trains for a few steps, as many as the plan's operations make worth timing, with just the class images that they
// need. Everything is written to `folder`, which the caller removes. Unset when `stop` ended it. Throws what train()
// throws.
std::optional<ProbedTimes> probe_run(const RunPlan& plan, const std::filesystem::path& folder,
                                     const std::vector<Observer*>& observers,
                                     const PortraitReaderSource& portrait_readers, StopFlag& stop);

}  // namespace sdtune::train
