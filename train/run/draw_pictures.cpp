#include "train/run/draw_pictures.h"

#include <ATen/core/grad_mode.h>

#include "model/pipeline/text_to_image.h"
#include "train/data/picture_tensor.h"

namespace sdtune::train {

std::vector<Image> draw_pictures(model::ModelBundle& bundle, const PictureSettings& settings,
                                 const std::vector<std::uint64_t>& seeds, const StopFlag& stop) {
  const torch::NoGradGuard no_grad;
  model::SampleRequest request;
  request.prompts.assign(seeds.size(), settings.prompt);
  request.negative_prompt = settings.negative_prompt;
  request.prompt_rules.syntax = settings.syntax;
  request.steps = settings.steps;
  request.height = settings.resolution;
  request.width = settings.resolution;
  request.guidance_scale = settings.guidance_scale;
  request.seeds = seeds;
  request.stop = &stop.asked();
  const std::unique_ptr<model::Scheduler> scheduler = model::make_sampler(bundle);
  const torch::Tensor latents = model::draw_latents(bundle, *scheduler, request);
  if (!latents.defined()) return {};
  const torch::Tensor decoded = model::decode_latents(bundle, latents).cpu();  // [B, 3, H, W]
  std::vector<Image> pictures;
  for (std::int64_t i = 0; i < decoded.size(0); ++i) pictures.push_back(tensor_to_picture(decoded[i]));
  return pictures;
}

Json sampler_description(const model::ModelBundle& bundle, const PictureSettings& settings) {
  Json description = Json::object();
  description["scheduler"] = bundle.scheduler_class;
  description["scheduler_config"] = bundle.scheduler_config;
  description["steps"] = settings.steps;
  description["guidance_scale"] = settings.guidance_scale;
  return description;
}

}  // namespace sdtune::train
