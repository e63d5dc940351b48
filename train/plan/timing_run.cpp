#include "train/plan/timing_run.h"

#include <algorithm>

#include "train/plan/probe_settings.h"
#include "train/plan/stopwatch.h"

namespace sdtune::train {
namespace {

constexpr double kTimedWork = 1e12;  // floating-point operations: seconds on a small CPU
constexpr double kLeastSteps = 3, kMostTimedSteps = 60;

// One checkpoint is written on the way.
TrainConfig probe_config(const RunPlan& plan, const std::filesystem::path& folder) {
  TrainConfig config = plan.run.config;
  const double steps = std::clamp(kTimedWork / std::max(plan.work.step, 1.0), kLeastSteps, kMostTimedSteps);
  config.run.max_train_steps = 1 + static_cast<std::int64_t>(steps);
  config.run.output = folder.string();
  config.run.overwrite = false;
  config.checkpoint.checkpointing_steps = *config.run.max_train_steps - 1;
  isolate_probe(config, std::max(plan.run.batch, config.data.sample_batch_size));
  config.observe.validation_data_dir.clear();
  return config;
}

}  // namespace

double ProbedTimes::evaluation_images(const RunPlan& plan) const {
  if (plan.work.evaluation_images == 0) return 0;
  const auto images = static_cast<double>(plan.run.generated_class_images);
  const double pace = plan.work.class_images > 0 && class_image > 0 ? class_image * images / plan.work.class_images
                                                                    : step / plan.work.step;  // s an operation
  return pace * plan.work.evaluation_images;
}

double ProbedTimes::total(const RunPlan& plan) const {
  const PlannedRun& run = plan.run;
  const std::int64_t checkpoints = (run.total_steps - 1) / run.config.checkpoint.checkpointing_steps;
  return start + class_image * static_cast<double>(run.generated_class_images) +
         step * static_cast<double>(run.total_steps) + evaluation_images(plan) +
         checkpoint * static_cast<double>(checkpoints) + finish;
}

std::optional<ProbedTimes> probe_run(const RunPlan& plan, const std::filesystem::path& folder,
                                     const std::vector<Observer*>& observers,
                                     const PortraitReaderSource& portrait_readers, StopFlag& stop) {
  Stopwatch watch;
  std::vector<Observer*> all = observers;
  all.push_back(&watch);
  const TrainResult result = train(probe_config(plan, folder), all, portrait_readers, stop);
  if (result.code != ExitCode::kDone) return std::nullopt;
  return watch.times();
}

}  // namespace sdtune::train
