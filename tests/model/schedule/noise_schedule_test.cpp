#include "model/schedule/noise_schedule.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "model/base/error.h"
#include "model/schedule/prediction.h"

namespace sdtune::model {
namespace {

NoiseSchedule stable_diffusion() {
  return NoiseSchedule::from_config(
      {{"beta_schedule", "scaled_linear"}, {"beta_start", 0.00085}, {"beta_end", 0.012}, {"clip_sample", false}});
}

TEST(NoiseSchedule, EndsAreTheGivenBetas) {
  const NoiseSchedule schedule = stable_diffusion();
  EXPECT_NEAR(schedule.betas[0].item<double>(), 0.00085, 1e-8);
  EXPECT_NEAR(schedule.betas[-1].item<double>(), 0.012, 1e-7);
  EXPECT_EQ(schedule.num_train_timesteps(), 1000);
}

TEST(NoiseSchedule, ZeroSnrKeepsTheFirstAndEmptiesTheLast) {
  const NoiseSchedule plain = stable_diffusion();
  const NoiseSchedule zero = NoiseSchedule::from_config({{"beta_schedule", "scaled_linear"},
                                                         {"beta_start", 0.00085},
                                                         {"beta_end", 0.012},
                                                         {"rescale_betas_zero_snr", true}});
  EXPECT_NEAR(zero.alphas_cumprod[0].item<double>(), plain.alphas_cumprod[0].item<double>(), 1e-6);
  EXPECT_EQ(zero.alphas_cumprod[-1].item<double>(), 0.0);
  EXPECT_GT(plain.alphas_cumprod[-1].item<double>(), 1e-3);
}

TEST(NoiseSchedule, NoiseAndVelocityAreARotation) {
  // With signal a and noise s, a^2 + s^2 = 1: x0 and noise come back from x_t and v, at each sample's own timestep.
  const NoiseSchedule schedule = stable_diffusion();
  const torch::Tensor x0 = torch::linspace(-1, 1, 24).view({3, 2, 2, 2});
  const torch::Tensor noise = x0.flip(0).cos();
  const torch::Tensor t = torch::tensor({0, 400, 999}, torch::kInt64);
  const torch::Tensor x_t = schedule.add_noise(x0, noise, t);
  const torch::Tensor v = schedule.velocity(x0, noise, t);
  for (std::int64_t i = 0; i < 3; ++i) {
    const torch::Tensor abar = schedule.alphas_cumprod[t[i].item<std::int64_t>()];
    const NoiseLevel level{abar.sqrt(), (1 - abar).sqrt()};
    EXPECT_TRUE(torch::allclose(predicted_x0(PredictionType::kVPrediction, v[i], x_t[i], level), x0[i], 1e-5, 1e-5));
    EXPECT_TRUE(
        torch::allclose(predicted_epsilon(PredictionType::kVPrediction, v[i], x_t[i], level), noise[i], 1e-5, 1e-5));
  }
}

TEST(NoiseSchedule, SnrIsSignalOverNoisePower) {
  const NoiseSchedule schedule = stable_diffusion();
  const torch::Tensor t = torch::tensor({10, 500}, torch::kInt64);
  const torch::Tensor abar = schedule.alphas_cumprod.index_select(0, t);
  EXPECT_TRUE(torch::allclose(schedule.snr(t), abar / (1 - abar)));
  EXPECT_GT(schedule.snr(t)[0].item<double>(), schedule.snr(t)[1].item<double>());
}

TEST(NoiseSchedule, HalfPrecisionIsRoundedOnceAtTheEnd) {
  const NoiseSchedule schedule = stable_diffusion();
  const torch::Tensor x0 = torch::full({1, 4}, 0.5, torch::kBFloat16);
  const torch::Tensor noise = torch::full({1, 4}, -0.25, torch::kBFloat16);
  const torch::Tensor t = torch::zeros({1}, torch::kInt64);
  const torch::Tensor expected = schedule.add_noise(x0.to(torch::kFloat32), noise.to(torch::kFloat32), t);
  EXPECT_TRUE(torch::equal(schedule.add_noise(x0, noise, t), expected.to(torch::kBFloat16)));
}

TEST(NoiseSchedule, TargetFollowsThePredictionType) {
  const NoiseSchedule schedule = stable_diffusion();
  const torch::Tensor x0 = torch::ones({1, 2});
  const torch::Tensor noise = torch::zeros({1, 2});
  const torch::Tensor t = torch::full({1}, 700, torch::kInt64);
  EXPECT_TRUE(torch::equal(training_target(PredictionType::kEpsilon, schedule, x0, noise, t), noise));
  EXPECT_TRUE(torch::equal(training_target(PredictionType::kSample, schedule, x0, noise, t), x0));
  EXPECT_TRUE(torch::equal(training_target(PredictionType::kVPrediction, schedule, x0, noise, t),
                           schedule.velocity(x0, noise, t)));
  EXPECT_EQ(prediction_type_of({{"prediction_type", "v_prediction"}}), PredictionType::kVPrediction);
  EXPECT_EQ(prediction_type_of(Json::object()), PredictionType::kEpsilon);
  EXPECT_THROW(prediction_type_of({{"prediction_type", "flow"}}), WeightError);
}

}  // namespace
}  // namespace sdtune::model
