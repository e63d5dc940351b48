#include "train/portrait/pretrain/perceptual_loss.h"

#include <gtest/gtest.h>

namespace sdtune::train::pretrain {
namespace {

TEST(PerceptualLoss, IsTheSumOverMapsOfTheDistanceOfUnitVectors) {
  const torch::Tensor along = torch::tensor({3.0f, 0.0f}).view({1, 2, 1, 1}),
                      across = torch::tensor({0.0f, 5.0f}).view({1, 2, 1, 1});
  EXPECT_NEAR(perceptual_loss({along}, {across}).item<double>(), 2, 1e-5);  // 1 + 1, whatever their lengths
  EXPECT_NEAR(perceptual_loss({along, along}, {across, across}).item<double>(), 4, 1e-5);
  EXPECT_NEAR(perceptual_loss({along}, {along * 7}).item<double>(), 0, 1e-5);
}

TEST(PerceptualLoss, IsAMeanOverPlacesAndImages) {
  const torch::Tensor maps = torch::randn({3, 8, 4, 4}), others = torch::randn({3, 8, 4, 4});
  double sum = 0;
  for (std::int64_t image = 0; image < 3; ++image) {
    for (std::int64_t y = 0; y < 4; ++y) {
      for (std::int64_t x = 0; x < 4; ++x) {
        const torch::Tensor a = maps[image].select(1, y).select(1, x), b = others[image].select(1, y).select(1, x);
        sum += (a / a.norm() - b / b.norm()).square().sum().item<double>();
      }
    }
  }
  EXPECT_NEAR(perceptual_loss({maps}, {others}).item<double>(), sum / 48, 1e-5);
}

TEST(PerceptualLoss, HasAGradientWhereAMapIsZero) {
  const torch::Tensor maps = torch::zeros({1, 4, 2, 2}).set_requires_grad(true);
  perceptual_loss({maps}, {torch::randn({1, 4, 2, 2})}).backward();
  EXPECT_TRUE(maps.grad().isfinite().all().item<bool>());
}

}  // namespace
}  // namespace sdtune::train::pretrain
