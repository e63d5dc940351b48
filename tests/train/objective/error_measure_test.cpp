#include "train/objective/error_measure.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/base/error.h"
#include "train/objective/diffusion_loss.h"

namespace sdtune::train {
namespace {

const torch::Tensor kDifferences = torch::tensor({{0.0f, 0.3f}, {-4.0f, 0.3f}});

TEST(ElementErrors, FollowTheirFormulas) {
  const torch::Tensor widths = torch::tensor({0.4f, 3.0f});
  EXPECT_TRUE(element_errors("l2", kDifferences, {}).allclose(kDifferences.square()));
  // sqrt(0.3^2 + 0.4^2) - 0.4 = 0.1 and sqrt(4^2 + 3^2) - 3 = 2
  const torch::Tensor smooth = element_errors("smooth_l1", kDifferences, widths);
  const torch::Tensor huber = element_errors("huber", kDifferences, widths);
  EXPECT_EQ(smooth[0][0].item<float>(), 0.0f);
  EXPECT_NEAR(smooth[0][1].item<float>(), 0.2f, 1e-6);
  EXPECT_NEAR(smooth[1][0].item<float>(), 4.0f, 1e-6);
  EXPECT_NEAR(huber[0][1].item<float>(), 0.08f, 1e-6);
  EXPECT_NEAR(huber[1][0].item<float>(), 12.0f, 1e-5);
}

TEST(HuberWidths, GoFromOneWithoutNoiseToHuberC) {
  const model::NoiseSchedule schedule{model::BetaOptions{}};
  const torch::Tensor timesteps = torch::tensor({0, 500, 999});
  ObjectiveOptions options;
  options.huber_c = 0.1;
  for (const char* name : {"exponential", "snr"}) {
    options.huber_schedule = name;
    const torch::Tensor widths = huber_widths(options, schedule, timesteps);
    EXPECT_GT(widths[0].item<float>(), 0.9f) << name;
    EXPECT_LT(widths[2].item<float>(), 0.12f) << name;
    EXPECT_GT(widths[1].item<float>(), widths[2].item<float>()) << name;
  }
  options.huber_schedule = "exponential";
  EXPECT_NEAR(huber_widths(options, schedule, timesteps)[1].item<float>(), std::sqrt(0.1f), 1e-6);
  options.huber_schedule = "constant";
  EXPECT_TRUE(huber_widths(options, schedule, timesteps).allclose(torch::full({3}, 0.1f)));
}

TEST(HuberWidths, AreFiniteAtZeroTerminalSnr) {
  model::BetaOptions betas;
  betas.rescale_betas_zero_snr = true;
  const model::NoiseSchedule schedule(betas);
  ObjectiveOptions options;
  EXPECT_FLOAT_EQ(huber_widths(options, schedule, torch::tensor({999})).item<float>(), 0.1f);
}

TEST(TimestepRange, IsDrawnFromAndNamedWhenItIsEmpty) {
  ObjectiveOptions options;
  options.min_timestep = 40;
  options.max_timestep = 43;
  const DiffusionLoss loss(model::NoiseSchedule(model::BetaOptions{}), model::PredictionType::kEpsilon, options, 1);
  std::vector<model::SampleKey> keys;
  for (std::uint64_t i = 0; i < 200; ++i) keys.push_back({.step = i});
  const torch::Tensor drawn = loss.draw(keys, {200, 1, 2, 2}, torch::kCPU).timesteps;
  EXPECT_EQ(drawn.min().item<int64_t>(), 40);
  EXPECT_EQ(drawn.max().item<int64_t>(), 42);
  options.min_timestep = 43;
  EXPECT_THROW(DiffusionLoss(model::NoiseSchedule(model::BetaOptions{}), model::PredictionType::kEpsilon, options, 1),
               ConfigError);
  options.min_timestep = 0;
  options.max_timestep = 1001;
  ASSERT_EQ(timestep_problems(options, 1000).size(), 1u);
  EXPECT_EQ(timestep_problems(options, 1000)[0].where, "max_timestep");
}

}  // namespace
}  // namespace sdtune::train
