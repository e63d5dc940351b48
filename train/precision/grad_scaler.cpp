#include "train/precision/grad_scaler.h"

#include <ATen/core/grad_mode.h>

namespace sdtune::train {

namespace {

constexpr double kFirstScale = 65536.0;
constexpr double kGrowth = 2.0;
constexpr double kBackoff = 0.5;
constexpr std::int64_t kGrowthInterval = 2000;

}  // namespace

GradScaler::GradScaler(bool enabled, torch::Device device)
    : enabled_(enabled),
      scale_(
          torch::full({}, enabled ? kFirstScale : 1.0, torch::TensorOptions().dtype(torch::kFloat32).device(device))),
      good_steps_(torch::zeros({}, torch::TensorOptions().dtype(torch::kInt32).device(device))) {}

void GradScaler::update(const torch::Tensor& norm) {
  if (!enabled_) return;
  const torch::NoGradGuard no_grad;
  const torch::Tensor bad = torch::isfinite(norm).logical_not();
  const torch::Tensor grown = (good_steps_ + 1).ge(kGrowthInterval);
  scale_.mul_(torch::where(bad, kBackoff, torch::where(grown, kGrowth, 1.0)));
  good_steps_.copy_(torch::where(bad.logical_or(grown), torch::zeros_like(good_steps_), good_steps_ + 1));
}

GradScalerState GradScaler::state() const {
  return {scale_.item<double>(), good_steps_.item<std::int64_t>()};
}

void GradScaler::load(const GradScalerState& state) {
  const torch::NoGradGuard no_grad;
  scale_.fill_(enabled_ ? state.scale : 1.0);
  good_steps_.fill_(state.good_steps);
}

}  // namespace sdtune::train
