#include "model/schedule/align_your_steps.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "model/base/error.h"
#include "model/schedule/scheduler.h"

namespace sdtune::model {
namespace {

NoiseSchedule schedule_for_aligned_steps(bool zero_snr) {
  return NoiseSchedule::from_config({{"beta_schedule", "scaled_linear"},
                                     {"beta_start", 0.00085},
                                     {"beta_end", 0.012},
                                     {"rescale_betas_zero_snr", zero_snr}});
}

// Where the last sigma is infinite, too, the ten are the authors', and others begin at the noisiest timestep.
TEST(AlignYourSteps, HaveTheSameTableAtZeroTerminalSnr) {
  const NoiseSchedule zero = schedule_for_aligned_steps(true);
  ASSERT_EQ(zero.alphas_cumprod[-1].item<float>(), 0);
  const std::vector<std::int64_t> ten = {999, 850, 736, 645, 545, 455, 343, 233, 124, 24};
  EXPECT_EQ(align_your_steps(zero, false, 10), ten);
  EXPECT_EQ(align_your_steps(schedule_for_aligned_steps(false), false, 10), ten);
  EXPECT_NE(align_your_steps(zero, true, 10), ten);
  for (const std::int64_t steps : {1, 5, 20, 58}) {
    const std::vector<std::int64_t> timesteps = align_your_steps(zero, false, steps);
    ASSERT_EQ(std::ssize(timesteps), steps);
    EXPECT_EQ(timesteps.front(), 999);
    EXPECT_GE(timesteps.back(), 0);
    EXPECT_EQ(std::adjacent_find(timesteps.begin(), timesteps.end(), std::less_equal<>()), timesteps.end());
  }
  EXPECT_THROW(align_your_steps(zero, false, 100), ConfigError);
}

TEST(AlignYourSteps, AreTakenBySchedulersOfZeroTerminalSnr) {
  const Json config = {{"beta_schedule", "scaled_linear"},
                       {"beta_start", 0.00085},
                       {"beta_end", 0.012},
                       {"rescale_betas_zero_snr", true},
                       {"prediction_type", "v_prediction"}};
  for (const char* name : {"DDPMScheduler", "EulerDiscreteScheduler", "DPMSolverMultistepScheduler"}) {
    const auto scheduler = make_scheduler(name, config);
    scheduler->set_timesteps(align_your_steps(scheduler->noise_schedule(), false, 12));
    FixedNoise noise(torch::ones({1, 1, 2, 2}));
    torch::Tensor sample = torch::ones({1, 1, 2, 2}) * scheduler->init_noise_sigma();
    for (std::int64_t i = 0; i < 12; ++i) {
      sample = scheduler->step(sample.sin(), scheduler->timesteps()[i].item<double>(), sample, noise);
    }
    EXPECT_TRUE(sample.isfinite().all().item<bool>()) << name;
  }
}

}  // namespace
}  // namespace sdtune::model
