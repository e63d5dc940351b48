#include "model/vae/autoencoder_kl.h"

#include <ATen/core/grad_mode.h>

#include <vector>

#include "model/core/check.h"
#include "model/core/cpu_implementation.h"
#include "model/vae/vae_tiling.h"

namespace sdtune::model {
namespace {

Conv2d quant_convolution(int64_t channels) {
  return Conv2d(Conv2dOptions{.in_channels = channels, .out_channels = channels, .kernel = 1, .padding = 0});
}

// `x` on the weights' device, in their dtype and in the memory format of feature maps.
torch::Tensor ready(const torch::Tensor& x, const torch::Tensor& weight) {
  return x.to(weight.options()).contiguous(map_memory_format(weight.device(), weight.scalar_type()));
}

constexpr double kMinLogvar = -30.0;
constexpr double kMaxLogvar = 20.0;

}  // namespace

AutoencoderKLImpl::AutoencoderKLImpl(const VaeConfig& config) : config_(config), encoder_(config), decoder_(config) {
  register_module("encoder", encoder_);
  register_module("decoder", decoder_);
  if (config.use_quant_conv) quant_conv_ = register_module("quant_conv", quant_convolution(2 * config.latent_channels));
  if (config.use_post_quant_conv) {
    post_quant_conv_ = register_module("post_quant_conv", quant_convolution(config.latent_channels));
  }
}

Moments AutoencoderKLImpl::encode(const torch::Tensor& image) {
  check_shape(image, {-1, config_.in_channels, -1, -1}, "image");
  const int64_t factor = config_.downscale();
  TORCH_CHECK(image.size(2) % factor == 0 && image.size(3) % factor == 0,
              "image: height and width must be multiples of ", factor, ", got ", image.sizes());
  const TileSizes sizes{config_.sample_size, config_.sample_size / factor};
  const torch::Tensor x = ready(image, encoder_->parameters().front());
  const torch::Tensor moments = tiling_ && needs_tiles(x.size(2), x.size(3), sizes)
                                    ? run_in_tiles(x, sizes, [this](const auto& tile) { return encode_tile(tile); })
                                    : encode_tile(x);
  const auto halves = moments.chunk(2, 1);
  return Moments{.mean = halves[0], .logvar = halves[1].clamp(kMinLogvar, kMaxLogvar)};
}

torch::Tensor AutoencoderKLImpl::decode(const torch::Tensor& latents) {
  check_shape(latents, {-1, config_.latent_channels, -1, -1}, "latents");
  const torch::Tensor x = ready(latents, decoder_->parameters().front());
  if (!slicing_ || x.size(0) <= 1 || torch::GradMode::is_enabled()) return decode_batch(x);
  std::vector<torch::Tensor> images;
  for (const torch::Tensor& one : x.split(1)) images.push_back(decode_batch(one));
  return torch::cat(images);
}

torch::Tensor AutoencoderKLImpl::decode_batch(const torch::Tensor& latents) {
  const TileSizes sizes{config_.sample_size / config_.downscale(), config_.sample_size};
  if (!tiling_ || !needs_tiles(latents.size(2), latents.size(3), sizes)) return decode_tile(latents);
  return run_in_tiles(latents, sizes, [this](const auto& tile) { return decode_tile(tile); });
}

torch::Tensor AutoencoderKLImpl::encode_tile(const torch::Tensor& image) {
  const torch::Tensor moments = encoder_(image);
  return quant_conv_ ? quant_conv_(moments) : moments;
}

torch::Tensor AutoencoderKLImpl::decode_tile(const torch::Tensor& latents) {
  return decoder_(post_quant_conv_ ? post_quant_conv_(latents) : latents);
}

}  // namespace sdtune::model
