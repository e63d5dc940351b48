#include "train/evaluate/model_pictures.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>

#include "model/pipeline/text_to_image.h"

namespace sdtune::train::evaluate {
namespace {

// [B, 3, H, W] in [0, 1] to [B, 3, side, side] in [-1, 1].
torch::Tensor at_side(const torch::Tensor& pictures, std::int64_t side) {
  torch::Tensor x = pictures.to(torch::kFloat32);
  if (side != kOwnSide && (x.size(2) != side || x.size(3) != side)) {
    x = at::_upsample_bilinear2d_aa(x, {side, side}, /*align_corners=*/false);
  }
  return x.clamp(0.0, 1.0) * 2.0 - 1.0;
}

}  // namespace

DrawPictures pictures_of(model::ModelBundle& bundle, const DrawingOptions& options) {
  return [&bundle, options](const std::vector<std::string>& prompts, const std::vector<std::uint64_t>& seeds) {
    const torch::NoGradGuard no_gradients;
    const std::unique_ptr<model::Scheduler> scheduler = model::make_sampler(bundle);
    model::SampleRequest request;
    request.prompts = prompts;
    request.seeds = seeds;
    request.steps = options.steps;
    request.guidance_scale = options.guidance_scale;
    request.stop = options.stop;
    const torch::Tensor latents = model::draw_latents(bundle, *scheduler, request);
    return latents.defined() ? at_side(model::decode_latents(bundle, latents), options.side) : torch::Tensor();
  };
}

}  // namespace sdtune::train::evaluate
