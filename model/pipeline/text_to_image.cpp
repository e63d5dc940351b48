#include "model/pipeline/text_to_image.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "model/base/error.h"
#include "model/core/device.h"
#include "model/core/device_copy.h"
#include "model/core/tensor_memory.h"
#include "model/pipeline/denoiser.h"
#include "model/pipeline/guidance.h"
#include "model/pipeline/init_image_latents.h"
#include "model/weights/tensor_text.h"

namespace sdtune::model {
namespace {

std::string text(std::int64_t number) {
  return std::to_string(number);
}

// The size where none is asked for: the init image's, or the UNet's own.
PixelSize usual_size(const ModelBundle& bundle, const torch::Tensor& image) {
  if (!image.defined()) return {bundle.resolution(), bundle.resolution()};
  const VaeConfig& config = bundle.vae->config();
  const bool is_latent = image.dim() == 4 && image.size(1) == config.latent_channels;
  if (image.dim() != 4 || (!is_latent && image.size(1) != config.in_channels)) {
    throw ConfigError("image", "has another shape than a batch of images (allowed: [1 or B, " +
                                   text(config.in_channels) + ", H, W], or latents [1 or B, " +
                                   text(config.latent_channels) + ", h, w])");
  }
  const std::int64_t scale = is_latent ? bundle.vae_factor() : 1;
  return {image.size(2) * scale, image.size(3) * scale};
}

// Latent cells of the second pass along one axis: as many as int(pixels x scale) pixels hold, as in A1111.
std::int64_t enlarged_cells(std::int64_t cells, std::int64_t factor, const HiresOptions& hires) {
  return static_cast<std::int64_t>(static_cast<double>(cells * factor) * hires.scale) / factor;
}

// One generator for the batch, or one for each image.
GeneratorNoise noise_of(const SampleRequest& request) {
  std::vector<at::Generator> generators = request.generators;
  if (generators.empty()) {
    for (const std::uint64_t seed : request.seeds) generators.push_back(make_cpu_generator(seed));
  }
  if (generators.size() != 1 && generators.size() != request.prompts.size()) {
    throw ConfigError(request.generators.empty() ? "seed" : "generator",
                      "there must be one, or one for each image (got " + std::to_string(generators.size()) + " for " +
                          std::to_string(request.prompts.size()) + " images)");
  }
  return GeneratorNoise(std::move(generators));
}

// With what conditions the UNet at every step; with guidance, for the unconditional half of the batch first.
Denoiser make_denoiser(ModelBundle& bundle, const SampleRequest& request, const PixelSize& size, bool guided) {
  const GuidedTexts texts =
      encode_texts(bundle, request.prompts, request.negative_prompt, request.prompt_rules, guided);
  PromptEmbeds embeds = texts.conditional;
  if (guided) {
    embeds.context = torch::cat({texts.unconditional.context, embeds.context});
    if (embeds.pooled.defined()) embeds.pooled = torch::cat({texts.unconditional.pooled, embeds.pooled});
  }
  const torch::Tensor context = embeds.context.to(bundle.device(), bundle.dtype());
  if (!bundle.is_xl()) return Denoiser(bundle.unet, context, {});
  const std::array<std::int64_t, 2> original = request.original_size.value_or(std::array{size.height, size.width});
  const std::array<std::int64_t, 2>& crop = request.crops_coords_top_left;
  const torch::Tensor ids =
      torch::tensor({original[0], original[1], crop[0], crop[1], size.height, size.width}, torch::kInt64);
  return Denoiser(bundle.unet, context,
                  {embeds.pooled.to(bundle.device(), bundle.dtype()),
                   copy_to_device(ids, bundle.device()).to(bundle.dtype()).expand({context.size(0), -1})});
}

torch::Tensor start_latents(const ModelBundle& bundle, const SampleRequest& request, const PixelSize& size,
                            NoiseSource& noise) {
  const std::int64_t factor = bundle.vae_factor();
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(request.prompts.size()),
                                           bundle.unet->config().in_channels, size.height / factor,
                                           size.width / factor};
  if (!request.latents.defined()) return noise.draw(shape, bundle.dtype(), bundle.device());
  if (request.latents.sizes() != torch::IntArrayRef(shape)) {
    throw ConfigError("latents",
                      "have another shape than prompts, height and width ask for (allowed: " + shape_text(shape) + ")");
  }
  return request.latents.to(bundle.device(), bundle.dtype());
}

// What `strength` is a share of.
std::int64_t steps_in_all(const SampleRequest& request) {
  return request.timesteps.empty() ? request.steps : std::ssize(request.timesteps);
}

// The latents that a run begins with, and the place among the scheduler's timesteps.
struct Start {
  torch::Tensor latents;
  std::int64_t first_timestep;
};

Start start_of_run(ModelBundle& bundle, Scheduler& scheduler, const SampleRequest& request, const PixelSize& size,
                   NoiseSource& noise) {
  if (!request.image.defined()) {
    return {start_latents(bundle, request, size, noise) * scheduler.init_noise_sigma(), 0};
  }
  const auto batch = static_cast<std::int64_t>(request.prompts.size());
  const std::int64_t first = skipped_timesteps(scheduler, steps_in_all(request), request.strength);
  scheduler.set_begin_index(first);
  const bool draws_each = std::max(request.generators.size(), request.seeds.size()) > 1;
  const torch::Tensor image = image_latents(bundle, request.image, batch, noise, draws_each);
  const torch::Tensor drawn = noise.draw(image.sizes(), bundle.dtype(), bundle.device());
  return {scheduler.add_noise(image, drawn, scheduler.timesteps().narrow(0, first, 1).expand({batch})), first};
}

torch::Tensor run_pass(ModelBundle& bundle, Scheduler& scheduler, const SampleRequest& request,
                       const SampleCallbacks& callbacks) {
  const PixelSize size = first_pass_size(bundle, request);
  const bool guided = request.guidance_scale > 1;
  GeneratorNoise noise = noise_of(request);
  if (request.timesteps.empty()) {
    scheduler.set_timesteps(request.steps);
  } else {
    scheduler.set_timesteps(request.timesteps);
  }
  Denoiser denoiser = make_denoiser(bundle, request, size, guided);
  const Start start = start_of_run(bundle, scheduler, request, size, noise);
  const torch::Device device = bundle.device();
  // Schedulers keep the memory order of their sample, so that the UNet changes it at no step.
  torch::Tensor latents = start.latents.contiguous(fast_memory_format(device, bundle.dtype()));

  const torch::Tensor all = scheduler.timesteps();
  const torch::Tensor timesteps = all.narrow(0, start.first_timestep, all.size(0) - start.first_timestep);
  const torch::Tensor on_device = copy_to_device(timesteps, device);
  for (std::int64_t i = 0; i < timesteps.size(0); ++i) {
    if (callbacks.stop != nullptr && callbacks.stop->load()) return torch::Tensor();
    if (callbacks.interrupt != nullptr && callbacks.interrupt->load()) break;
    const double t = timesteps[i].item<double>();
    const torch::Tensor input = scheduler.scale_model_input(guided ? torch::cat({latents, latents}) : latents, t);
    torch::Tensor prediction = denoiser(input, on_device[i]);
    if (guided) prediction = guided_prediction(prediction, request.guidance_scale, request.guidance_rescale);
    latents = scheduler.step(prediction, t, latents, noise, {request.eta});
    if (callbacks.on_step) callbacks.on_step({i + 1, timesteps.size(0), t, latents});
  }
  return latents;
}

// Before minutes of work, so that none is lost to an error.
void check_request(Scheduler& scheduler, const SampleRequest& request) {
  if (request.prompts.empty()) throw ConfigError("prompt", "is missing");
  if (request.image.defined() && request.latents.defined()) {
    throw ConfigError("latents", "do not go with image", "leave one out");
  }
  const HiresOptions& hires = request.hires;
  if (!(hires.scale >= 1)) {
    throw ConfigError("hires_scale", "is out of range (got " + std::to_string(hires.scale) + "; allowed: >= 1)");
  }
  if (hires.scale == 1) return;
  if (hires.steps > 0 && !request.timesteps.empty()) {
    throw ConfigError("hires_steps", "does not go with given timesteps, which the second pass runs over, too",
                      "leave hires_steps out, or take a sampler whose steps are not given");
  }
  skipped_timesteps(scheduler, hires.steps > 0 ? hires.steps : steps_in_all(request), hires.strength);
  if (hires.steps > 0) scheduler.set_timesteps(hires.steps);  // refuses a number that only the second pass would meet
}

// The second pass: image to image from the first one's latents, enlarged, with the same seeds.
SampleRequest second_pass(const ModelBundle& bundle, const SampleRequest& request, const torch::Tensor& latents) {
  SampleRequest next = request;
  next.hires = {};
  next.latents = torch::Tensor();
  const std::int64_t factor = bundle.vae_factor();
  next.image = resized_latents(latents, enlarged_cells(latents.size(2), factor, request.hires),
                               enlarged_cells(latents.size(3), factor, request.hires));
  next.height = next.image.size(2) * factor;
  next.width = next.image.size(3) * factor;
  next.strength = request.hires.strength;
  if (request.hires.steps > 0) next.steps = request.hires.steps;
  return next;
}

// Bytes that wait for tensors when the autoencoder begins. What the UNet's loop left (at SD 1.5's size 0.9 GiB, most of
// it packed weights) is of other sizes than the autoencoder asks for, and its peak would come on top; what a bundled
// base leaves is less than this, and serves its next image.
constexpr std::size_t kKeptFromLoop = std::size_t{128} << 20;

}  // namespace

PixelSize first_pass_size(const ModelBundle& bundle, const SampleRequest& request) {
  const std::int64_t factor = bundle.vae_factor();
  const PixelSize usual = usual_size(bundle, request.image);
  const PixelSize size{request.height > 0 ? request.height : usual.height,
                       request.width > 0 ? request.width : usual.width};
  if (request.image.defined() && (size.height != usual.height || size.width != usual.width)) {
    throw ConfigError("image", "is not of the height and width that are asked for (got " + text(usual.width) + "x" +
                                   text(usual.height) + "; allowed: " + text(size.width) + "x" + text(size.height) +
                                   ")");
  }
  for (const auto& [key, value] : {std::pair("height", size.height), std::pair("width", size.width)}) {
    if (value <= 0 || value % factor != 0) {
      throw ConfigError(key, "must be a multiple of " + text(factor) + " (got " + text(value) + ")");
    }
  }
  return size;
}

PixelSize output_size(const ModelBundle& bundle, const SampleRequest& request) {
  const PixelSize first = first_pass_size(bundle, request);
  const std::int64_t factor = bundle.vae_factor();
  return {enlarged_cells(first.height / factor, factor, request.hires) * factor,
          enlarged_cells(first.width / factor, factor, request.hires) * factor};
}

torch::Tensor generate_latents(ModelBundle& bundle, Scheduler& scheduler, const SampleRequest& request,
                               const SampleCallbacks& callbacks) {
  const at::NoGradGuard no_grad;
  check_request(scheduler, request);
  const torch::Tensor latents = run_pass(bundle, scheduler, request, callbacks);
  const bool is_interrupted = callbacks.interrupt != nullptr && callbacks.interrupt->load();
  if (!latents.defined() || is_interrupted || request.hires.scale == 1) return latents;
  return run_pass(bundle, scheduler, second_pass(bundle, request, latents), callbacks);
}

torch::Tensor decode_latents(ModelBundle& bundle, const torch::Tensor& latents) {
  const at::NoGradGuard no_grad;
  trim_tensor_memory(kKeptFromLoop);
  const VaeConfig& config = bundle.vae->config();
  prepare_vae(bundle);
  const torch::Tensor weight = bundle.vae->parameters().front();
  const torch::Tensor scaled =
      latents.to(weight.device(), weight.scalar_type()) / config.scaling_factor + config.shift_factor.value_or(0.0);
  return (bundle.vae->decode(scaled).to(torch::kFloat32) * 0.5 + 0.5).clamp(0, 1);
}

}  // namespace sdtune::model
