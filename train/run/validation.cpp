#include "train/run/validation.h"

#include "model/core/image_tensor.h"
#include "model/generate/image_generator.h"
#include "train/dist/stop_request.h"
#include "train/run/held_out_loss.h"

namespace sdtune::train {

namespace {

// Weighted prompts: as `sample` and the web interfaces will read them.
model::GenerateOptions validation_image_options(const TrainConfig& config) {
  const ObserveOptions& options = config.observe;
  model::GenerateOptions images;
  images.prompt = options.validation_prompt;
  if (!options.validation_negative_prompt.empty()) images.negative_prompt = options.validation_negative_prompt;
  images.steps = options.validation_inference_steps;
  images.guidance_scale = options.validation_guidance_scale;
  images.width = images.height = *config.data.resolution;
  return images;
}

// This rank's images, zero where another rank generates, so that the sum over ranks is every image:
// [count, side, side, 3]. Whatever is there when `stop` asks.
torch::Tensor generate_share(Run& run, const model::GenerateOptions& options, const std::vector<std::uint64_t>& seeds,
                             const StopFlag& stop) {
  const auto count = static_cast<std::int64_t>(seeds.size());
  torch::Tensor pixels = torch::zeros({count, *options.height, *options.width, 3}, torch::kInt32);
  model::ImageGenerator generator(run.bundle);
  for (std::int64_t i = run.group->rank(); i < count; i += run.group->world_size()) {
    const torch::Tensor image = generator.generate(options, {options.prompt}, {seeds[static_cast<std::size_t>(i)]},
                                                   {.stop = &stop.requested()});
    if (!image.defined()) break;
    pixels[i].copy_(model::pixels_to_bytes(image[0]));
  }
  return pixels;
}

// Fills in images, prompts and seeds of the event; takes it away when asked to stop.
void generate_validation(Run& run, ValidationOutcome& outcome, const StopFlag& stop) {
  const model::GenerateOptions options = validation_image_options(run.config);
  const std::int64_t count = run.config.observe.num_validation_images;
  ValidationEvent& event = *outcome.event;
  for (std::int64_t i = 0; i < count; ++i) {
    event.prompts.push_back(options.prompt);
    event.seeds.push_back(static_cast<std::uint64_t>(run.config.run.seed + i));
  }
  torch::Tensor pixels;
  const torch::Device meeting_place = run.group->world_size() > 1 ? run.device : torch::Device(torch::kCPU);
  outcome.failure =
      run_share(*run.group, [&] { pixels = generate_share(run, options, event.seeds, stop).to(meeting_place); });
  if (agreed_signal(*run.group, stop) != 0) {
    outcome = {};
    return;
  }
  if (outcome.failure) return;
  run.group->all_reduce_sum(pixels);
  run.group->settle();
  for (const torch::Tensor& bytes : pixels.cpu().to(torch::kUInt8).unbind()) {
    event.images.push_back(model::bytes_to_image(bytes));
  }
}

}  // namespace

ValidationOutcome validate_model(Run& run, std::int64_t step, const StopFlag& stop) {
  ValidationOutcome outcome;
  outcome.event.emplace().step = step;
  if (!run.config.observe.validation_prompt.empty()) generate_validation(run, outcome, stop);
  if (outcome.event && !outcome.failure) {
    outcome.failure = run_share(*run.group, [&] { outcome.event->loss = held_out_loss(run); });
  }
  if (outcome.failure) outcome.event.reset();
  return outcome;
}

}  // namespace sdtune::train
