#include "app/commands/picture_maker.h"

#include <utility>

#include "app/cli/stop_signals.h"
#include "app/commands/sampler_names.h"
#include "model/schedule/align_your_steps.h"

namespace sdtune::app {
namespace {

std::unique_ptr<model::Scheduler> chosen_scheduler(const model::ModelBundle& bundle, const SampleOptions& options) {
  if (!options.sampler) return model::make_sampler(bundle);
  const Sampler sampler = find_sampler(*options.sampler);
  // The bundle's noise schedule under another solver: only what the name asks for changes.
  Json config = bundle.scheduler_config;
  config.update(sampler.changes);
  return model::make_scheduler(sampler.class_name, config, "--sampler");
}

}  // namespace

PictureMaker::PictureMaker(const std::filesystem::path& folder, const SampleOptions& options,
                           const torch::Device& device, torch::Dtype dtype)
    : folder_(folder),
      options_(options),
      bundle_(model::load_bundle(folder, dtype, device)),
      scheduler_(chosen_scheduler(bundle_, options)) {
  if (options.sampler && find_sampler(*options.sampler).aligns_its_steps) {
    timesteps_ = model::align_your_steps(scheduler_->noise_schedule(), bundle_.is_xl(), options.steps);
  }
}

torch::Tensor PictureMaker::draw(const std::string& prompt, std::int64_t first, std::int64_t count,
                                 std::function<void(const model::SampleProgress&)> on_step) {
  model::SampleRequest request;
  request.prompts.assign(static_cast<std::size_t>(count), prompt);
  request.negative_prompt = options_.negative_prompt;
  request.steps = options_.steps;
  request.timesteps = timesteps_;
  request.height = options_.height.value_or(0);
  request.width = options_.width.value_or(0);
  request.guidance_scale = options_.guidance_scale;
  request.seeds.clear();
  for (std::int64_t i = 0; i < count; ++i) {
    request.seeds.push_back(static_cast<std::uint64_t>(options_.seed + first + i));
  }
  request.stop = &stop_requested();
  request.on_step = std::move(on_step);
  const torch::Tensor latents = model::draw_latents(bundle_, *scheduler_, request);
  return latents.defined() ? model::decode_latents(bundle_, latents) : latents;
}

}  // namespace sdtune::app
