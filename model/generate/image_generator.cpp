#include "model/generate/image_generator.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "model/generate/sampler_names.h"
#include "model/schedule/align_your_steps.h"

namespace sdtune::model {

PromptRules prompt_rules(const GenerateOptions& options) {
  return {parse_prompt_syntax(options.prompt_syntax, "prompt_syntax"), options.clip_skip};
}

GenerateOptions ImageGenerator::resolved(GenerateOptions options) const {
  options.guidance_scale = options.guidance_scale.value_or(default_guidance_scale(bundle_.is_xl()));
  return options;
}

ImageGenerator::Sizes ImageGenerator::sizes(const GenerateOptions& options) {
  const SampleRequest request = make_request(options, *make_scheduler(options));
  return {first_pass_size(bundle_, request), output_size(bundle_, request)};
}

std::string ImageGenerator::scheduler_class(const GenerateOptions& options) const {
  return options.sampler ? find_sampler(*options.sampler).class_name : bundle_.scheduler_class;
}

std::unique_ptr<Scheduler> ImageGenerator::make_scheduler(const GenerateOptions& options) const {
  if (!options.sampler) return make_sampler(bundle_);
  const Sampler sampler = find_sampler(*options.sampler);
  return make_sampler(bundle_, sampler.class_name, sampler.changes);
}

SampleRequest ImageGenerator::make_request(const GenerateOptions& options, const Scheduler& scheduler) {
  SampleRequest request;
  request.negative_prompt = options.negative_prompt;
  request.prompt_rules = prompt_rules(options);
  request.steps = options.steps;
  if (options.sampler && find_sampler(*options.sampler).aligns_its_steps) {
    request.timesteps = align_your_steps(scheduler.noise_schedule(), bundle_.is_xl(), options.steps);
  }
  request.guidance_scale = options.guidance_scale.value_or(default_guidance_scale(bundle_.is_xl()));
  request.guidance_rescale = options.guidance_rescale;
  request.eta = options.eta;
  request.strength = options.strength;
  request.hires = {options.hires_scale, options.hires_steps.value_or(0), options.hires_strength};
  if (options.init_image.empty()) {
    request.height = options.height.value_or(0);
    request.width = options.width.value_or(0);
    return request;
  }
  InitImageFile wanted{options.init_image, options.width, options.height};
  if (!init_image_.defined() || wanted != init_file_) {
    init_image_ = read_init_image(wanted, bundle_);
    init_file_ = std::move(wanted);
  }
  request.image = init_image_;
  return request;
}

// LoRAs of one prompt must not change the images of the next.
void ImageGenerator::attach(const std::vector<WeightedLora>& loras) {
  if (loras == attached_) return;
  detach_loras(bundle_, attached_);
  attached_.clear();
  attach_loras(bundle_, loras);
  attached_ = loras;
}

torch::Tensor ImageGenerator::generate(const GenerateOptions& options, std::vector<std::string> prompts,
                                       std::vector<std::uint64_t> seeds, const SampleCallbacks& callbacks) {
  const at::NoGradGuard no_grad;
  attach(options.loras);
  const std::unique_ptr<Scheduler> scheduler = make_scheduler(options);
  SampleRequest request = make_request(options, *scheduler);
  request.prompts = std::move(prompts);
  request.seeds = std::move(seeds);
  const torch::Tensor latents = generate_latents(bundle_, *scheduler, request, callbacks);
  return latents.defined() ? decode_latents(bundle_, latents) : latents;
}

}  // namespace sdtune::model
