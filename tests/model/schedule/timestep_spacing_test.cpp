#include "model/schedule/timestep_spacing.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "model/schedule/scheduler.h"

namespace sdtune::model {
namespace {

TEST(TrailingSpacing, HasOneTimestepAStepAndNoneBelowZero) {
  for (const std::int64_t total : {1000, 999, 300, 7}) {
    for (std::int64_t steps = 1; steps <= total; ++steps) {
      const std::vector<double> timesteps = spaced_timesteps("trailing", total, steps, 0);
      ASSERT_EQ(std::ssize(timesteps), steps) << total;
      EXPECT_EQ(timesteps.front(), static_cast<double>(total - 1)) << steps;
      EXPECT_GE(timesteps.back(), 0) << total << " " << steps;
      for (std::size_t i = 1; i < timesteps.size(); ++i) ASSERT_LT(timesteps[i], timesteps[i - 1]) << steps;
    }
  }
  EXPECT_EQ(std::ceil(1000 / (1000.0 / 61)), 62);  // what NumPy counts, and diffusers visits
}

TEST(TrailingSpacing, GivesNoSchedulerATimestepBelowZero) {
  for (const char* name : {"DDIMScheduler", "DDPMScheduler", "EulerDiscreteScheduler", "LMSDiscreteScheduler",
                           "DPMSolverMultistepScheduler", "UniPCMultistepScheduler", "DEISMultistepScheduler"}) {
    const auto scheduler = make_scheduler(name, {{"timestep_spacing", "trailing"}});
    for (const std::int64_t steps : {60, 61, 103}) {
      scheduler->set_timesteps(steps);
      EXPECT_EQ(scheduler->timesteps().size(0), steps) << name;
      EXPECT_GE(scheduler->timesteps().min().item<double>(), 0) << name << " " << steps;
    }
  }
}

// At a timestep -1 DDIM would take the noisiest level, and end 264 away from x0. It is not exactly there otherwise,
// because its strides are whole.
TEST(TrailingSpacing, DdimEndsAtTheImageThatAnOracleKnows) {
  const auto scheduler = make_scheduler("DDIMScheduler", {{"timestep_spacing", "trailing"}, {"clip_sample", false}});
  const torch::Tensor x0 = torch::linspace(-1, 1, 16).view({1, 4, 2, 2});
  const torch::Tensor noise = x0.flip(1).cos();
  FixedNoise none(torch::zeros({1, 4, 2, 2}));
  scheduler->set_timesteps(61);
  const torch::Tensor timesteps = scheduler->timesteps();
  torch::Tensor sample = scheduler->add_noise(x0, noise, timesteps.slice(0, 0, 1));
  for (std::int64_t i = 0; i < timesteps.size(0); ++i) {
    sample = scheduler->step(noise, timesteps[i].item<double>(), sample, none);
  }
  EXPECT_LT((sample - x0).abs().max().item<double>(), 0.3);
}

}  // namespace
}  // namespace sdtune::model
