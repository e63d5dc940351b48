#include "model/pipeline/init_image_latents.h"

#include <algorithm>
#include <string>
#include <vector>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

// The VAE in float32 while it encodes, where diffusers' SDXL pipeline has it so: with force_upcast in bfloat16 too, in
// which it decodes.
class EncodingDtype {
 public:
  explicit EncodingDtype(ModelBundle& bundle)
      : vae_(bundle.vae), dtype_(bundle.vae->parameters().front().scalar_type()) {
    changes_ = bundle.is_xl() && vae_->config().force_upcast && dtype_ != torch::kFloat32;
    if (changes_) vae_->to(torch::kFloat32);
  }
  ~EncodingDtype() {
    if (changes_) vae_->to(dtype_);
  }
  EncodingDtype(const EncodingDtype&) = delete;
  EncodingDtype& operator=(const EncodingDtype&) = delete;

 private:
  AutoencoderKL vae_;
  torch::Dtype dtype_;
  bool changes_ = false;
};

// Timesteps of one step: Heun's and the SDE solver's steps call the UNet twice.
std::int64_t timesteps_a_step(const Scheduler& scheduler) {
  const std::string& name = scheduler.class_name();
  return name == "HeunDiscreteScheduler" || name == "DPMSolverSDEScheduler" ? 2 : 1;
}

torch::Tensor repeated(const torch::Tensor& one, std::int64_t batch) {
  if (one.size(0) == batch) return one;
  if (one.size(0) != 1) {
    throw ConfigError("image", "there must be one, or one for each image (got " + std::to_string(one.size(0)) +
                                   " for " + std::to_string(batch) + " images)");
  }
  return one.expand({batch, -1, -1, -1});
}

}  // namespace

void prepare_vae(ModelBundle& bundle) {
  if (bundle.is_xl() && bundle.vae->config().force_upcast &&
      bundle.vae->parameters().front().scalar_type() == torch::kFloat16) {
    bundle.vae->to(torch::kFloat32);
  }
}

std::int64_t skipped_timesteps(const Scheduler& scheduler, std::int64_t steps, double strength) {
  if (!(strength > 0 && strength <= 1)) {
    throw ConfigError("strength", "is out of range (got " + std::to_string(strength) + "; allowed: 0 < x <= 1)");
  }
  const std::int64_t run = std::min(static_cast<std::int64_t>(static_cast<double>(steps) * strength), steps);
  if (run < 1) {
    throw ConfigError("strength", "leaves no step of " + std::to_string(steps) + " (got " + std::to_string(strength) +
                                      "; allowed: at least 1 / steps)");
  }
  return (steps - run) * timesteps_a_step(scheduler);
}

torch::Tensor image_latents(ModelBundle& bundle, const torch::Tensor& image, std::int64_t batch, NoiseSource& noise,
                            bool draws_each) {
  const VaeConfig& config = bundle.vae->config();
  if (image.size(1) == config.latent_channels) return repeated(image.to(bundle.device(), bundle.dtype()), batch);
  prepare_vae(bundle);
  const EncodingDtype encoding(bundle);
  const torch::Tensor rounded = image.to(bundle.dtype());  // as diffusers does before it encodes in float32
  const torch::Tensor images = draws_each ? repeated(rounded, batch) : rounded;
  std::vector<torch::Tensor> means, deviations;
  for (const torch::Tensor& one : images.split(1)) {
    const Moments moments = bundle.vae->encode(one);
    means.push_back(moments.mean);
    deviations.push_back((0.5 * moments.logvar).exp());
  }
  const torch::Tensor mean = torch::cat(means);
  const torch::Tensor drawn =
      mean + torch::cat(deviations) * noise.draw(mean.sizes(), mean.scalar_type(), mean.device());
  const torch::Tensor scaled =
      (drawn.to(bundle.device(), bundle.dtype()) - config.shift_factor.value_or(0.0)) * config.scaling_factor;
  return repeated(scaled, batch);
}

torch::Tensor resized_latents(const torch::Tensor& latents, std::int64_t height, std::int64_t width) {
  return torch::upsample_bilinear2d(latents.to(torch::kFloat32), {height, width}, /*align_corners=*/false)
      .to(latents.scalar_type());
}

}  // namespace sdtune::model
