#include "model/pipeline/text_to_image.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "model/base/error.h"
#include "model/pipeline/guidance.h"
#include "model/pipeline/prompt_encoding.h"

namespace sdtune::model {
namespace {

struct Size {
  std::int64_t height;  // px
  std::int64_t width;   // px
};

std::string text(std::int64_t number) {
  return std::to_string(number);
}

Size picture_size(const ModelBundle& bundle, const SampleRequest& request) {
  const std::int64_t factor = bundle.vae_factor();
  const std::int64_t usual = bundle.unet->config().sample_size * factor;
  const Size size{request.height > 0 ? request.height : usual, request.width > 0 ? request.width : usual};
  for (const auto& [key, value] : {std::pair("height", size.height), std::pair("width", size.width)}) {
    if (value <= 0 || value % factor != 0) {
      throw ConfigError(key,
                        "does not fit the VAE (got " + text(value) + "; allowed: multiples of " + text(factor) + ")");
    }
  }
  return size;
}

// One generator for the batch, or one for each picture.
GeneratorNoise noise_of(const SampleRequest& request) {
  std::vector<at::Generator> generators = request.generators;
  if (generators.empty()) {
    for (const std::uint64_t seed : request.seeds) generators.push_back(make_cpu_generator(seed));
  }
  if (generators.size() != 1 && generators.size() != request.prompts.size()) {
    throw ConfigError("seed", "there must be one, or one for each picture (got " + std::to_string(generators.size()) +
                                  " for " + std::to_string(request.prompts.size()) + " pictures)");
  }
  return GeneratorNoise(std::move(generators));
}

// A batch of equal prompts is encoded once.
PromptEmbeds encode_batch(ModelBundle& bundle, const std::vector<std::string>& prompts) {
  const auto count = static_cast<std::int64_t>(prompts.size());
  const bool equal = std::all_of(prompts.begin(), prompts.end(), [&](const auto& p) { return p == prompts.front(); });
  PromptEmbeds embeds =
      encode_prompts(bundle, tokenize_prompts(bundle, equal ? std::vector{prompts.front()} : prompts));
  if (!equal) return embeds;
  embeds.context = embeds.context.expand({count, -1, -1});
  if (embeds.pooled.defined()) embeds.pooled = embeds.pooled.expand({count, -1});
  return embeds;
}

// What the UNet is told at every step; with guidance, for the unconditional half of the batch first.
struct Conditions {
  torch::Tensor context;
  AddedConditions added;
};

PromptEmbeds unconditional_embeds(ModelBundle& bundle, const SampleRequest& request, const PromptEmbeds& conditional) {
  if (bundle.is_xl() && !request.negative_prompt && bundle.force_zeros_for_empty_prompt) {
    return {torch::zeros_like(conditional.context), torch::zeros_like(conditional.pooled)};
  }
  const std::vector<std::string> prompts(request.prompts.size(), request.negative_prompt.value_or(""));
  return encode_batch(bundle, prompts);
}

Conditions make_conditions(ModelBundle& bundle, const SampleRequest& request, const Size& size, bool guided) {
  PromptEmbeds embeds = encode_batch(bundle, request.prompts);
  if (guided) {
    const PromptEmbeds negative = unconditional_embeds(bundle, request, embeds);
    embeds.context = torch::cat({negative.context, embeds.context});
    if (embeds.pooled.defined()) embeds.pooled = torch::cat({negative.pooled, embeds.pooled});
  }
  Conditions out;
  out.context = embeds.context.to(bundle.device(), bundle.dtype());
  if (!bundle.is_xl()) return out;
  const std::array<std::int64_t, 2> original = request.original_size.value_or(std::array{size.height, size.width});
  const std::array<std::int64_t, 2>& crop = request.crops_coords_top_left;
  const torch::Tensor ids =
      torch::tensor({original[0], original[1], crop[0], crop[1], size.height, size.width}, torch::kInt64);
  out.added.text_embeds = embeds.pooled.to(bundle.device(), bundle.dtype());
  out.added.time_ids = ids.to(bundle.device(), bundle.dtype()).expand({out.context.size(0), -1});
  return out;
}

torch::Tensor start_latents(const ModelBundle& bundle, const SampleRequest& request, const Size& size,
                            NoiseSource& noise) {
  const std::int64_t factor = bundle.vae_factor();
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(request.prompts.size()),
                                           bundle.unet->config().in_channels, size.height / factor,
                                           size.width / factor};
  if (!request.latents.defined()) return noise.draw(shape, bundle.dtype(), bundle.device());
  if (request.latents.sizes() != torch::IntArrayRef(shape)) {
    std::string wanted;
    for (const std::int64_t extent : shape) wanted += (wanted.empty() ? "" : ", ") + text(extent);
    throw ConfigError("latents", "have another shape than prompts, height and width ask for (allowed: " + wanted + ")");
  }
  return request.latents.to(bundle.device(), bundle.dtype());
}

}  // namespace

torch::Tensor draw_latents(ModelBundle& bundle, Scheduler& scheduler, const SampleRequest& request) {
  const at::NoGradGuard no_grad;
  if (request.prompts.empty()) throw ConfigError("prompt", "is missing");
  const Size size = picture_size(bundle, request);
  const bool guided = request.guidance_scale > 1;
  GeneratorNoise noise = noise_of(request);
  if (request.timesteps.empty()) {
    scheduler.set_timesteps(request.steps);
  } else {
    scheduler.set_timesteps(request.timesteps);
  }
  const Conditions conditions = make_conditions(bundle, request, size, guided);
  torch::Tensor latents = start_latents(bundle, request, size, noise) * scheduler.init_noise_sigma();

  const torch::Tensor timesteps = scheduler.timesteps();
  for (std::int64_t i = 0; i < timesteps.size(0); ++i) {
    if (request.stop != nullptr && request.stop->load()) return torch::Tensor();
    const double t = timesteps[i].item<double>();
    const torch::Tensor input = scheduler.scale_model_input(guided ? torch::cat({latents, latents}) : latents, t);
    torch::Tensor prediction =
        bundle.unet->forward(input, timesteps[i].to(bundle.device()), conditions.context, conditions.added);
    if (guided) prediction = guided_prediction(prediction, request.guidance_scale, request.guidance_rescale);
    latents = scheduler.step(prediction, t, latents, noise, {request.eta});
    if (request.on_step) request.on_step({i + 1, timesteps.size(0), t, latents});
  }
  return latents;
}

torch::Tensor decode_latents(ModelBundle& bundle, const torch::Tensor& latents) {
  const at::NoGradGuard no_grad;
  const VaeConfig& config = bundle.vae->config();
  if (config.force_upcast && bundle.vae->parameters().front().scalar_type() == torch::kFloat16) {
    bundle.vae->to(torch::kFloat32);
  }
  const torch::Tensor weight = bundle.vae->parameters().front();
  const torch::Tensor scaled =
      latents.to(weight.device(), weight.scalar_type()) / config.scaling_factor + config.shift_factor.value_or(0.0);
  std::vector<torch::Tensor> pictures;
  for (const torch::Tensor& one : scaled.split(1)) {
    pictures.push_back((bundle.vae->decode(one).to(torch::kFloat32) * 0.5 + 0.5).clamp(0, 1));
  }
  return torch::cat(pictures);
}

}  // namespace sdtune::model
