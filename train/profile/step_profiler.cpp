#include "train/profile/step_profiler.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <atomic>
#include <set>
#include <utility>

#include "model/base/error.h"

namespace sdtune::train {

namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

constexpr std::int64_t kWarmUp = 2;             // steps
constexpr const char* kStep = "ProfilerStep#";  // the name that viewers look for
std::atomic<bool> is_profiling = false;         // some run of this process

ProfilerConfig profiler_config() {
  return ProfilerConfig(ProfilerState::KINETO, /*report_input_shapes=*/true, /*profile_memory=*/false,
                        /*with_stack=*/false, /*with_flops=*/true, /*with_modules=*/false);
}

std::set<ActivityType> activities(const c10::Device& device) {
  std::set<ActivityType> found = {ActivityType::CPU};
  if (device.is_cuda()) found.insert(ActivityType::CUDA);
  return found;
}

}  // namespace

StepProfiler::StepProfiler(FileSystem& files, std::filesystem::path folder, std::int64_t steps, c10::Device device,
                           Warn warn)
    : files_(files), folder_(std::move(folder)), left_(steps), device_(device), warn_(std::move(warn)) {}

StepProfiler::~StepProfiler() {
  step_.reset();
  if (!totals_) return;
  stop();  // an exception ended the run
  profiler::disableProfiler();
}

void StepProfiler::begin_step(std::int64_t step) {
  if (left_ == 0) return;
  if (skipped_ < kWarmUp) {
    ++skipped_;
    return;
  }
  if (!totals_) {
    first_ = step + 1;
    if (!start()) return;
  }
  step_ = std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE);
  if (step_->isActive()) step_->before(kStep + std::to_string(step + 1));
}

std::optional<ProfileEvent> StepProfiler::end_step() {
  if (!step_) return std::nullopt;
  step_.reset();
  ++profiled_;
  return --left_ == 0 ? finish() : std::nullopt;
}

std::optional<ProfileEvent> StepProfiler::finish() {
  if (!totals_) return std::nullopt;
  left_ = 0;
  ProfileEvent event = sums();
  stop();
  try {
    write(event);
  } catch (const StorageError& error) {
    if (warn_) warn_(error.problems().front());
    event.trace.clear();
  }
  return event;
}

bool StepProfiler::start() {
  if (is_profiling.exchange(true)) {
    left_ = 0;
    if (warn_) warn_({"profile", "another run of this process is being profiled", "training continues without it"});
    return false;
  }
  profiler::prepareProfiler(profiler_config(), activities(device_));
  profiler::enableProfiler(profiler_config(), activities(device_));
  totals_ = std::make_unique<OperatorTotals>();
  return true;
}

void StepProfiler::stop() {
  totals_.reset();
  is_profiling = false;
}

ProfileEvent StepProfiler::sums() const {
  ProfileEvent event;
  event.first_step = first_;
  event.steps = profiled_;
  event.is_of_launches = device_.is_cuda();
  event.trace = folder_ / "trace.json";
  event.operators = totals_->operators();
  for (PhaseTotal& phase : totals_->phases()) {
    if (phase.name.starts_with(kStep)) {
      event.seconds += phase.seconds;
    } else {
      event.phases.push_back(std::move(phase));
    }
  }
  return event;
}

void StepProfiler::write(const ProfileEvent& event) {
  const std::unique_ptr<profiler::ProfilerResult> result = profiler::disableProfiler();
  create_parent_folder(files_, event.trace);
  const std::filesystem::path partial = partial_name(event.trace);
  result->save(partial.string());
  files_.rename(partial, event.trace);
  write_file_atomically(files_, folder_ / "operators.txt", profile_text(event, event.operators.size()));
}

}  // namespace sdtune::train
