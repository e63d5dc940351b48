#include "app/commands/picture_maker.h"

#include <cmath>
#include <memory>
#include <utility>

#include "app/cli/stop_signals.h"
#include "app/commands/model_additions.h"
#include "app/commands/sampler_names.h"
#include "app/commands/start_picture.h"
#include "model/lora/lora_model.h"
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
    : folder_(folder), bundle_(model::load_model(folder, dtype, device)) {
  add_to_model(options, bundle_);
}

std::string PictureMaker::scheduler_class(const SampleOptions& options) const {
  return options.sampler ? find_sampler(*options.sampler).class_name : bundle_.scheduler_class;
}

std::int64_t PictureMaker::count_cut_tokens(const SampleOptions& options) const {
  return options.prompt_syntax == "plain" ? model::count_cut_tokens(bundle_, options.prompt) : 0;
}

model::SampleRequest PictureMaker::request_of(const SampleOptions& options) const {
  model::SampleRequest request;
  request.negative_prompt = options.negative_prompt;
  request.prompt_rules = {model::parse_prompt_syntax(options.prompt_syntax, "--prompt-syntax"), options.clip_skip};
  request.steps = options.steps;
  request.guidance_scale = options.guidance_scale;
  request.guidance_rescale = options.guidance_rescale;
  request.eta = options.eta;
  request.strength = options.strength;
  request.hires = {options.hires_scale, options.hires_steps.value_or(0), options.hires_strength};
  if (options.init_image.empty()) {
    request.height = options.height.value_or(0);
    request.width = options.width.value_or(0);
  } else {
    request.image = read_start_picture(options, bundle_);
  }
  return request;
}

PictureMaker::Size PictureMaker::picture_size(const SampleOptions& options) const {
  const model::SampleRequest request = request_of(options);
  const std::int64_t factor = bundle_.vae_factor();
  const std::int64_t usual = bundle_.unet->config().sample_size * factor;
  const auto enlarged = [&](std::int64_t length) {
    return std::llround(static_cast<double>(length / factor) * request.hires.scale) * factor;
  };
  if (request.image.defined()) return {enlarged(request.image.size(3)), enlarged(request.image.size(2))};
  return {enlarged(options.width.value_or(usual)), enlarged(options.height.value_or(usual))};
}

// Those of one prompt must not colour the next.
void PictureMaker::use_loras(const std::vector<std::string>& texts) {
  if (texts == lora_texts_) return;
  std::vector<Problem> gone;
  std::vector<LoraArgument> loras = read_lora_arguments(texts, gone);
  if (!gone.empty()) throw ConfigError(std::move(gone));
  detach_loras(bundle_, loras_);
  lora_texts_ = {""};  // until all hang on: no list of prompts says this
  loras_ = std::move(loras);
  attach_loras(bundle_, loras_);
  lora_texts_ = texts;
}

torch::Tensor PictureMaker::draw(const SampleOptions& options, std::int64_t first, std::int64_t count,
                                 std::function<void(const model::SampleProgress&)> on_step) {
  use_loras(options.lora);
  const std::unique_ptr<model::Scheduler> scheduler = chosen_scheduler(bundle_, options);
  model::SampleRequest request = request_of(options);
  if (options.sampler && find_sampler(*options.sampler).aligns_its_steps) {
    request.timesteps = model::align_your_steps(scheduler->noise_schedule(), bundle_.is_xl(), options.steps);
  }
  request.prompts.assign(static_cast<std::size_t>(count), options.prompt);
  request.seeds.clear();
  for (std::int64_t i = 0; i < count; ++i) {
    request.seeds.push_back(static_cast<std::uint64_t>(options.seed + first + i));
  }
  request.stop = &stop_requested();
  request.on_step = std::move(on_step);
  const torch::Tensor latents = model::draw_latents(bundle_, *scheduler, request);
  return latents.defined() ? model::decode_latents(bundle_, latents) : latents;
}

}  // namespace sdtune::app
