#include "train/tune/timed_work.h"

#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "model/core/device.h"
#include "train/run/train.h"

namespace sdtune::train {
namespace {

constexpr std::size_t kFirstSteps = 2;  // allocate, and bring libraries to choose their kernels
constexpr std::uint64_t kSeed = 0;

// Keeps when each step ended.
class StepClock : public Observer {
 public:
  void on_step(const StepEvent& event) override { ends_.push_back(event.elapsed); }
  double median_step() const {
    std::vector<double> steps;
    for (std::size_t i = kFirstSteps; i < ends_.size(); ++i) steps.push_back(ends_[i] - ends_[i - 1]);
    return median(std::move(steps));
  }

 private:
  std::vector<double> ends_;
};

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) throw std::logic_error("median of nothing");
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::optional<double> time_step(const TimingPlan& plan, const std::string& format, const PortraitReaderSource& readers,
                                StopFlag& stop) {
  TrainConfig config = plan.config;
  config.precision.mixed_precision = format == "float32" ? "no" : "bf16";
  config.run.max_train_steps = plan.steps;
  config.run.num_train_epochs.reset();
  config.run.overwrite = true;
  StepClock clock;
  if (train(config, {&clock}, readers, stop).code != ExitCode::kDone) return std::nullopt;
  return clock.median_step();
}

ImageClock::ImageClock(const TimingPlan& plan, const std::string& format)
    : bundle_(
          model::load_bundle(model::find_base(plan.config.run.base), model::parse_dtype(format, "dtype"), torch::kCPU)),
      generator_(bundle_) {
  options_.steps = plan.sampling_steps;
  options_.device = "cpu";
  options_.dtype = format;
  options_ = generator_.resolved(options_);
  generate();  // the first one takes longer
}

double ImageClock::time_one() {
  const auto start = std::chrono::steady_clock::now();
  generate();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void ImageClock::generate() {
  const torch::NoGradGuard no_grad;
  generator_.generate(options_, {"a photo of a person"}, {kSeed});
}

}  // namespace sdtune::train
