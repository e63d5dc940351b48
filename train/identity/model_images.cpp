#include "train/identity/model_images.h"

#include <ATen/ops/_upsample_bilinear2d_aa.h>

#include "model/generate/image_generator.h"

namespace sdtune::train {
namespace {

// [B, 3, H, W] in [0, 1] to [B, 3, side, side] in [-1, 1].
torch::Tensor at_side(const torch::Tensor& images, std::int64_t side) {
  torch::Tensor x = images.to(torch::kFloat32);
  if (side != kOwnSide && (x.size(2) != side || x.size(3) != side)) {
    x = at::_upsample_bilinear2d_aa(x, {side, side}, /*align_corners=*/false);
  }
  return x.clamp(0.0, 1.0) * 2.0 - 1.0;
}

}  // namespace

GenerateImages model_images(model::ModelBundle& bundle, const ModelImageOptions& options) {
  return [&bundle, options](const std::vector<std::string>& prompts, const std::vector<std::uint64_t>& seeds) {
    model::GenerateOptions asked;
    asked.prompt_syntax = "plain";
    asked.steps = options.steps;
    asked.guidance_scale = options.guidance_scale;
    const torch::Tensor images = model::ImageGenerator(bundle).generate(asked, prompts, seeds, {.stop = options.stop});
    return images.defined() ? at_side(images, options.side) : images;
  };
}

}  // namespace sdtune::train
