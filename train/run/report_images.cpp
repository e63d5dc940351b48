#include "train/run/report_images.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "model/core/image_tensor.h"
#include "model/generate/image_generator.h"
#include "model/image/png_write.h"
#include "model/lora/lora_file.h"
#include "model/pipeline/bundle.h"
#include "model/pipeline/scheduler_file.h"
#include "train/config/concept_options.h"
#include "train/data/photo_set.h"
#include "train/data/trigger.h"
#include "train/observe/page_images.h"

namespace sdtune::train {

namespace {

constexpr int kProbeSteps =
    3;  // of the sampler, to see how long an image takes; and 1 for what does not depend on steps

class Stopwatch {
 public:
  explicit Stopwatch(double (*clock)()) : clock_(clock), start_(clock()) {}
  double seconds() const { return clock_() - start_; }

 private:
  double (*clock_)();
  double start_;
};

model::GenerateOptions image_options(const TrainConfig& config, const std::string& prompt) {
  model::GenerateOptions options;
  const ObserveOptions& observe = config.observe;
  options.prompt = prompt.empty() ? concepts_of(config.data).front().instance_prompt : prompt;
  if (!observe.validation_negative_prompt.empty()) options.negative_prompt = observe.validation_negative_prompt;
  options.steps = observe.validation_inference_steps;
  options.guidance_scale = observe.validation_guidance_scale;
  options.width = options.height = *config.data.resolution;
  return options;
}

// Writes the images of `count` seeds; false when asked to stop.
bool generate(FileSystem& files, const std::filesystem::path& folder, const std::string& whose,
              model::ModelBundle& bundle, const model::GenerateOptions& options, std::int64_t seed, std::int64_t count,
              const StopFlag& stop) {
  model::ImageGenerator generator(bundle);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<std::uint64_t>(seed + i);
    const torch::Tensor image = generator.generate(options, {options.prompt}, {number}, {.stop = &stop.requested()});
    if (!image.defined()) return false;
    model::write_png(files, folder / fmt::format("{}-{:02}_seed-{}.png", whose, i, number),
                     model::bytes_to_image(model::pixels_to_bytes(image[0]).cpu()), {{"prompt", options.prompt}});
  }
  return true;
}

ImageTime time_of_image(model::ModelBundle& bundle, model::GenerateOptions options, double (*clock)(),
                        const StopFlag& stop) {
  model::ImageGenerator generator(bundle);
  const auto seconds = [&](std::int64_t steps) {
    options.steps = steps;
    const Stopwatch watch(clock);
    generator.generate(options, {options.prompt}, {0}, {.stop = &stop.requested()});
    return watch.seconds();
  };
  const double several =
      seconds(kProbeSteps);  // the slow first use is in this one, so that no time comes out too short
  const double one = seconds(1);
  const double step = std::max(0.0, several - one) / (kProbeSteps - 1);
  return {std::max(0.0, one - step), step};
}

}  // namespace

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string report_prompt(const DataOptions& options, const std::vector<Photo>& photos) {
  const ConceptOptions first = concepts_of(options).front();
  const std::string own = trigger_of(first.instance_prompt, first.class_prompt);
  const std::string prompt =
      with_trigger(first.instance_prompt, options.trigger_word.empty() ? own : options.trigger_word);
  if (is_said_of(photos, 0, trigger_of(prompt, first.class_prompt))) return prompt;
  const auto photo =
      std::find_if(photos.begin(), photos.end(), [](const Photo& candidate) { return candidate.subject == 0; });
  return photo == photos.end() ? prompt : photo->caption;
}

PairsThatFit pairs_that_fit(PairsThatFit wanted, double left, double load, ImageTime image) {
  const double time = left - load;
  const double pairs = time / std::max(2 * image.of(wanted.steps), 1e-9);
  if (pairs >= 1) return {std::min(wanted.pairs, static_cast<std::int64_t>(std::min(pairs, 1e6))), wanted.steps};
  const double steps = (time / 2 - image.fixed) / std::max(image.step, 1e-9);
  if (steps < static_cast<double>(std::min(kFewestSteps, wanted.steps))) return {};
  return {1, std::min(wanted.steps, static_cast<std::int64_t>(std::min(steps, 1e6)))};
}

std::int64_t write_report_images(FileSystem& files, const ReportImagesPlan& plan, const StopFlag& stop) {
  const TrainConfig& config = plan.config;
  if (config.observe.report_images == 0 || !config.observe.validation_prompt.empty()) return 0;
  const torch::NoGradGuard no_grad;
  const Stopwatch watch(plan.clock);
  const bool is_lora = config.run.method == "lora";
  const std::filesystem::path folder = comparison_folder(plan.run);
  model::GenerateOptions options = image_options(config, plan.prompt);
  model::ModelBundle bundle = model::load_bundle(model::find_base(config.run.base), plan.dtype, plan.device);
  const double load_seconds = is_lora ? 0 : watch.seconds();
  if (2 * load_seconds > plan.limit_seconds) return 0;
  const ImageTime time = time_of_image(bundle, options, plan.clock, stop);
  const auto [pairs, steps] = pairs_that_fit({config.observe.report_images, options.steps},
                                             plan.limit_seconds - watch.seconds(), load_seconds, time);
  if (pairs == 0) return 0;
  options.steps = steps;
  if (std::filesystem::exists(folder)) files.remove_tree(folder);
  files.create_directories(folder);
  write_file_atomically(files, folder / "prompt.txt", options.prompt);
  if (!generate(files, folder, "base", bundle, options, config.run.seed, pairs, stop)) return 0;
  if (is_lora) {
    options.loras = {{plan.run / "model" / model::kLoraFile, 1.0}};
    model::replace_scheduler(bundle, plan.run / "model");  // of zero terminal SNR, where it was trained with that
  } else {
    bundle = model::load_bundle(plan.run / "model", plan.dtype, plan.device);
  }
  return generate(files, folder, "model", bundle, options, config.run.seed, pairs, stop) ? pairs : 0;
}

}  // namespace sdtune::train
