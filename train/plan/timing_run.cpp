#include "train/plan/timing_run.h"

#include <algorithm>
#include <chrono>

#include "train/plan/probe_settings.h"

namespace sdtune::train {
namespace {

constexpr double kTimedWork = 1e12;  // floating-point operations: seconds on a small CPU
constexpr double kLeastSteps = 3, kMostTimedSteps = 60;

class Stopwatch : public Observer {
 public:
  void on_phase(const std::string& name, std::int64_t done, std::int64_t total) override {
    const double now = seconds();
    if (name == "generating class images") {
      if (first_image_ < 0) first_image_ = last_;
      generated_ = done;
      generating_ = now - first_image_;
    }
    static_cast<void>(total);
    last_ = now;
  }
  void on_generation(const GenerationEvent&) override { last_ = seconds(); }
  void on_step(const StepEvent& event) override {
    if (event.step == 1) first_step_ = seconds();
    last_step_ = seconds();
    steps_ = event.step;
    times.peak_bytes = event.max_memory_bytes;
  }
  void on_checkpoint(const CheckpointEvent& event) override { times.checkpoint = event.waited; }
  void on_end(const EndEvent&) override {
    times.timed_steps = steps_ - 1;
    times.class_image = generated_ > 0 ? generating_ / static_cast<double>(generated_) : 0;
    const double stepping = last_step_ - first_step_ - times.checkpoint;
    times.step = stepping / static_cast<double>(std::max<std::int64_t>(1, times.timed_steps));
    times.start = std::max(0.0, first_step_ - times.step - generating_);
    times.finish = seconds() - last_step_;
  }
  ProbedTimes times;

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double last_ = 0, first_image_ = -1, generating_ = 0, first_step_ = 0, last_step_ = 0;
  std::int64_t generated_ = 0, steps_ = 0;
};

// One checkpoint is written on the way.
TrainConfig probe_config(const RunPlan& plan, const std::filesystem::path& folder) {
  TrainConfig config = plan.run.config;
  const double steps = std::clamp(kTimedWork / std::max(plan.work.step, 1.0), kLeastSteps, kMostTimedSteps);
  config.run.max_train_steps = 1 + static_cast<std::int64_t>(steps);
  config.run.output = folder.string();
  config.run.overwrite = false;
  config.checkpoint.checkpointing_steps = *config.run.max_train_steps - 1;
  isolate_probe(config, std::max(plan.run.batch, config.data.sample_batch_size));
  config.optim.lr_scheduler = "constant";
  config.optim.lr_warmup_steps = 0;
  config.observe.validation_data_dir.clear();
  config.identity.identity_steps.reset();
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
  return watch.times;
}

}  // namespace sdtune::train
