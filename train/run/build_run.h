// The composition root: from configuration to a wired Run. The only place that knows every class.
#pragma once

#include <memory>
#include <vector>

#include "train/observe/observer.h"
#include "train/preflight/preflight.h"
#include "train/run/run.h"
#include "train/run/train.h"

namespace sdtune::train {

// Loads the base, joins the ranks, prepares the data and builds the optimizer; resumes from the checkpoint that the
// preflight found. Writes class images only. Throws StopRequest when asked to stop.
std::unique_ptr<Run> build_run(const TrainConfig& config, std::shared_ptr<ProcessGroup> group, torch::Device device,
                               const Preflight& preflight, const std::vector<Observer*>& observers,
                               const StopFlag& stop);

// The first half of it: base, data and batch plan, without anything to train with.
std::unique_ptr<Run> build_prepared_run(const TrainConfig& config, std::shared_ptr<ProcessGroup> group,
                                        torch::Device device, const Preflight& preflight,
                                        const std::vector<Observer*>& observers, const StopFlag& stop);

// What the first lines of a run say.
RunSummary summarize(const Run& run);

}  // namespace sdtune::train
