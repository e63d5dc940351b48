#include "train/prepare/generation_time.h"

#include <torch/types.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "model/base/clock.h"
#include "model/generate/image_generator.h"

namespace sdtune::train {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

double seconds_per_batch(model::ModelBundle& bundle, const model::GenerateOptions& options, const std::string& prompt,
                         std::int64_t batch, const StopFlag& stop) {
  constexpr std::int64_t kTimedStep = 2;  // the first one also allocates memory
  std::atomic<bool> is_over = false;
  Clock::time_point start = Clock::now();
  double step = 0;
  std::int64_t steps = 1;
  torch::Tensor latents;
  const auto on_step = [&](const model::SampleProgress& progress) {
    progress.latents.sum().item<float>();  // a GPU's work is over when a number of it is here
    step = seconds_since(start);
    start = Clock::now();
    steps = progress.total;
    latents = progress.latents;
    is_over = progress.step == kTimedStep || stop.requested();
  };
  const auto count = static_cast<std::size_t>(batch);
  model::ImageGenerator(bundle).generate(options, std::vector<std::string>(count, prompt),
                                         std::vector<std::uint64_t>(count, 0), {on_step, &is_over});
  if (stop.requested() || !latents.defined()) return 0;
  start = Clock::now();
  model::decode_latents(bundle, latents).sum().item<float>();
  return step * static_cast<double>(steps) + seconds_since(start);
}

}  // namespace sdtune::train
