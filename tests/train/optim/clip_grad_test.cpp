#include "train/optim/clip_grad.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sdtune::train {
namespace {

std::vector<TrainedParameter> parameters_with(const std::vector<torch::Tensor>& gradients) {
  std::vector<TrainedParameter> parameters;
  for (const torch::Tensor& gradient : gradients) {
    const std::string name = std::string("p").append(std::to_string(parameters.size()));
    parameters.push_back({name, torch::zeros_like(gradient), gradient, {}, 0});
  }
  return parameters;
}

torch::Tensor one() {
  return torch::scalar_tensor(1.0f);
}

TEST(ClipGradient, TakesTheNormOverAllParameters) {
  torch::manual_seed(0);
  const std::vector<torch::Tensor> gradients = {torch::randn({40000}), torch::randn({7, 5}), torch::randn({3})};
  double sum = 0;
  for (const torch::Tensor& gradient : gradients) sum += gradient.to(torch::kFloat64).square().sum().item<double>();
  const ClippedGradient clipped = clip_gradient(parameters_with(gradients), one(), 1.0);
  EXPECT_NEAR(clipped.norm.item<double>() / std::sqrt(sum), 1.0, 1e-6);
  EXPECT_NEAR(clipped.factor.item<double>() * (std::sqrt(sum) + 1e-6), 1.0, 1e-6);
}

TEST(ClipGradient, LeavesASmallGradientAlone) {
  const ClippedGradient clipped = clip_gradient(parameters_with({torch::full({4}, 0.1f)}), one(), 1.0);
  EXPECT_EQ(clipped.factor.item<float>(), 1.0f);
}

TEST(ClipGradient, TakesTheLossScaleOut) {
  const ClippedGradient clipped =
      clip_gradient(parameters_with({torch::full({4}, 1024.0f)}), torch::scalar_tensor(1024.0f), 1.0);
  EXPECT_NEAR(clipped.norm.item<float>(), 2.0, 1e-6);
  EXPECT_NEAR(clipped.factor.item<float>() * 1024.0, 0.5, 1e-6);
}

TEST(ClipGradient, ShowsWhatIsNotFinite) {
  for (const double bad : {std::nan(""), static_cast<double>(INFINITY)}) {
    const std::vector<TrainedParameter> parameters = parameters_with({torch::ones({4}), torch::full({2}, bad)});
    const ClippedGradient clipped = clip_gradient(parameters, one(), 1.0);
    EXPECT_FALSE(std::isfinite(clipped.norm.item<float>()));
    EXPECT_FALSE(std::isfinite(clipped.factor.item<float>()));
    EXPECT_EQ(first_non_finite(parameters), "p1");
  }
  EXPECT_EQ(first_non_finite(parameters_with({torch::ones({4})})), "");
}

TEST(ClipGradient, ReadsHalfGradients) {
  const torch::Tensor gradient = torch::full({5000}, 0.5f);
  for (const torch::ScalarType dtype : {torch::kBFloat16, torch::kFloat16}) {
    const ClippedGradient clipped = clip_gradient(parameters_with({gradient.to(dtype)}), one(), 1.0);
    EXPECT_NEAR(clipped.norm.item<double>(), 0.5 * std::sqrt(5000.0), 1e-4) << dtype;
  }
}

}  // namespace
}  // namespace sdtune::train
