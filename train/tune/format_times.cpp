#include "train/tune/format_times.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <stdexcept>

#include "model/core/device.h"
#include "model/generate/image_generator.h"
#include "model/pipeline/bundle.h"
#include "train/run/train.h"

namespace sdtune::train {
namespace {

constexpr std::array kFormats = {"float32", "bfloat16"};
constexpr std::size_t kFirstSteps = 2;  // allocate, and bring libraries to choose their kernels
constexpr std::uint64_t kSeed = 0;

double median(std::vector<double> values) {
  if (values.empty()) throw std::logic_error("median of nothing");
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

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

// Unset when it was stopped.
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

class ImageClock {
 public:
  ImageClock(const TimingPlan& plan, const std::string& format)
      : bundle_(model::load_bundle(model::find_base(plan.config.run.base), model::parse_dtype(format, "dtype"),
                                   torch::kCPU)),
        generator_(bundle_) {
    options_.steps = plan.sampling_steps;
    options_.device = "cpu";
    options_.dtype = format;
    options_ = generator_.resolved(options_);
    generate();  // the first one takes longer
  }
  double time_one() {
    const auto start = std::chrono::steady_clock::now();
    generate();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  void generate() {
    const torch::NoGradGuard no_grad;
    generator_.generate(options_, {"a photo of a person"}, {kSeed});
  }

  model::ModelBundle bundle_;
  model::ImageGenerator generator_;
  model::GenerateOptions options_;
};

}  // namespace

std::vector<FormatTimes> time_formats(const TimingPlan& plan, const PortraitReaderSource& readers, StopFlag& stop) {
  std::map<std::string, std::vector<double>> images, steps;
  std::map<std::string, ImageClock> clocks;
  for (const char* format : kFormats) clocks.try_emplace(format, plan, format);
  for (int round = 1; round <= plan.rounds; ++round) {
    const std::string of = "round " + std::to_string(round) + " of " + std::to_string(plan.rounds) + ", ";
    for (const char* format : kFormats) {
      if (stop.signal() != 0) return {};
      if (plan.on_line) plan.on_line(of + format);
      images[format].push_back(clocks.at(format).time_one());
      const std::optional<double> step = time_step(plan, format, readers, stop);
      if (!step) return {};
      steps[format].push_back(*step);
    }
  }
  std::vector<FormatTimes> times;
  for (const char* format : kFormats) times.push_back({format, median(images[format]), median(steps[format])});
  return times;
}

std::string fastest_format(const std::vector<FormatTimes>& times, double FormatTimes::*seconds, double least_gain) {
  const FormatTimes* exact = nullptr;
  const FormatTimes* best = nullptr;
  for (const FormatTimes& each : times) {
    if (each.dtype == "float32") exact = &each;
    if (best == nullptr || each.*seconds < best->*seconds) best = &each;
  }
  if (best == nullptr || exact == nullptr) throw std::logic_error("float32 was not timed");
  return best->*seconds < (1 - least_gain) * (exact->*seconds) ? best->dtype : exact->dtype;
}

}  // namespace sdtune::train
