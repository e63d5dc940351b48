#include "train/portrait/pretrain/perceptual_loss.h"

namespace sdtune::train::pretrain {
namespace {

constexpr double kSmallest = 1e-6;  // length of a place's channels, where all are zero

torch::Tensor unit_channels(const torch::Tensor& map) {
  const torch::Tensor x = map.to(torch::kFloat32);
  return x * (x.square().sum(1, /*keepdim=*/true) + kSmallest).rsqrt();
}

}  // namespace

torch::Tensor perceptual_loss(const std::vector<torch::Tensor>& maps, const std::vector<torch::Tensor>& others) {
  torch::Tensor sum = torch::zeros({}, maps.at(0).options().dtype(torch::kFloat32));
  for (std::size_t i = 0; i < maps.size(); ++i) {
    sum = sum + (unit_channels(maps[i]) - unit_channels(others.at(i))).square().sum(1).mean();
  }
  return sum;
}

}  // namespace sdtune::train::pretrain
