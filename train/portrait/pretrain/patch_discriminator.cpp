#include "train/portrait/pretrain/patch_discriminator.h"

namespace sdtune::train::pretrain {
namespace {

constexpr std::int64_t kGroups = 8;
constexpr double kNormEps = 1e-5;
constexpr double kSlope = 0.2;  // of the leaky ReLU below zero

model::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t stride) {
  return model::Conv2d(
      model::Conv2dOptions{.in_channels = in, .out_channels = out, .kernel = 4, .stride = stride, .padding = 1});
}

torch::Tensor activated(const torch::Tensor& x) {
  return torch::leaky_relu(x, kSlope);
}

}  // namespace

PatchDiscriminatorImpl::PatchDiscriminatorImpl(std::int64_t width)
    : conv_in_(conv(3, width, 2)),
      conv_down_(conv(width, 2 * width, 2)),
      norm_down_(kGroups, 2 * width, kNormEps),
      conv_mid_(conv(2 * width, 4 * width, 1)),
      norm_mid_(kGroups, 4 * width, kNormEps),
      conv_out_(conv(4 * width, 1, 1)) {
  register_module("conv_in", conv_in_);
  register_module("conv_down", conv_down_);
  register_module("norm_down", norm_down_);
  register_module("conv_mid", conv_mid_);
  register_module("norm_mid", norm_mid_);
  register_module("conv_out", conv_out_);
}

torch::Tensor PatchDiscriminatorImpl::forward(const torch::Tensor& images) {
  torch::Tensor x = activated(conv_in_(images));
  x = activated(norm_down_(conv_down_(x)));
  x = activated(norm_mid_(conv_mid_(x)));
  return conv_out_(x);
}

torch::Tensor discriminator_loss(const torch::Tensor& real_scores, const torch::Tensor& fake_scores) {
  return 0.5 * (torch::relu(1.0 - real_scores).mean() + torch::relu(1.0 + fake_scores).mean());
}

torch::Tensor generator_loss(const torch::Tensor& fake_scores) {
  return -fake_scores.mean();
}

}  // namespace sdtune::train::pretrain
