// What every scheduler must do, whatever its formula. Numbers are compared with diffusers in
// tests/python/test_schedulers.py.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "model/base/error.h"
#include "model/schedule/scheduler.h"

namespace sdtune::model {
namespace {

Json stable_diffusion_config() {
  return {{"beta_schedule", "scaled_linear"},
          {"beta_start", 0.00085},
          {"beta_end", 0.012},
          {"steps_offset", 1},
          {"clip_sample", false},
          {"skip_prk_steps", true}};
}

torch::Tensor seeded(torch::IntArrayRef shape, std::uint64_t seed) {
  GeneratorNoise noise(make_cpu_generator(seed));
  return noise.draw(shape, torch::kFloat32, torch::kCPU);
}

// A model whose output depends on its input and on t.
torch::Tensor model_at(const torch::Tensor& input, double t) {
  return (input * 0.3 + t / 1000).sin();
}

torch::Tensor run(Scheduler& scheduler, std::int64_t steps, torch::Dtype dtype = torch::kFloat32) {
  scheduler.set_timesteps(steps);
  GeneratorNoise noise(make_cpu_generator(7));
  torch::Tensor sample = (seeded({2, 4, 3, 5}, 3) * scheduler.init_noise_sigma()).to(dtype);
  const torch::Tensor timesteps = scheduler.timesteps();
  for (std::int64_t i = 0; i < timesteps.size(0); ++i) {
    const double t = timesteps[i].item<double>();
    sample = scheduler.step(model_at(scheduler.scale_model_input(sample, t), t), t, sample, noise);
  }
  return sample;
}

class SchedulerContract : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Scheduler> make(const Json& config = stable_diffusion_config()) const {
    return make_scheduler(GetParam(), config);
  }
};

TEST_P(SchedulerContract, KeepsItsClassNameAndEveryKeyInTheConfig) {
  const auto scheduler = make();
  EXPECT_EQ(scheduler->class_name(), GetParam());
  EXPECT_EQ(scheduler->config()["_class_name"], GetParam());
  EXPECT_EQ(scheduler->config()["beta_end"], 0.012);
  EXPECT_EQ(scheduler->config()["num_train_timesteps"], 1000);
}

TEST_P(SchedulerContract, ConfigMakesTheSameSchedulerAgain) {
  const auto first = make();
  const auto second = make(first->config());
  EXPECT_TRUE(torch::equal(run(*first, 9), run(*second, 9)));
}

TEST_P(SchedulerContract, TimestepsDescendAndNumberTheSteps) {
  const auto scheduler = make();
  for (const std::int64_t steps : {1, 2, 7, 20, 50}) {
    scheduler->set_timesteps(steps);
    const torch::Tensor timesteps = scheduler->timesteps().to(torch::kFloat64);
    ASSERT_GE(timesteps.size(0), steps);
    EXPECT_LE(timesteps.size(0), std::max<std::int64_t>(2 * steps - 1, steps + 1));  // two calls a step at most
    for (std::int64_t i = 1; i < timesteps.size(0); ++i) {
      EXPECT_LE(timesteps[i].item<double>(), timesteps[i - 1].item<double>());
    }
    EXPECT_GE(timesteps[-1].item<double>(), 0);
    EXPECT_LT(timesteps[0].item<double>(), 1000);
    const torch::Tensor sigmas = scheduler->sigmas();
    EXPECT_TRUE(!sigmas.defined() || sigmas.size(0) == timesteps.size(0) + 1);
  }
}

TEST_P(SchedulerContract, VisitsGivenTimestepsOrRefusesThem) {
  const auto scheduler = make();
  scheduler->set_timesteps(7);
  try {
    scheduler->set_timesteps({999, 640, 20});
  } catch (const ConfigError& error) {
    EXPECT_NE(error.problems().front().line().find("timesteps"), std::string::npos);
    EXPECT_GE(scheduler->timesteps().size(0), 7);  // the run before is left as it was
    return;
  }
  const torch::Tensor visited = std::get<0>(at::unique_consecutive(scheduler->timesteps().to(torch::kInt64)));
  EXPECT_TRUE(torch::equal(visited, torch::tensor({999, 640, 20}, torch::kInt64)));
  EXPECT_THROW(scheduler->set_timesteps({20, 640}), ConfigError);
  scheduler->set_timesteps(7);
  EXPECT_GE(scheduler->timesteps().size(0), 7);
}

TEST_P(SchedulerContract, KeepsShapeAndDtype) {
  const auto scheduler = make();
  for (const torch::Dtype dtype : {torch::kFloat32, torch::kBFloat16}) {
    const torch::Tensor sample = run(*scheduler, 5, dtype);
    EXPECT_EQ(sample.sizes(), torch::IntArrayRef({2, 4, 3, 5}));
    EXPECT_EQ(sample.scalar_type(), dtype);
    EXPECT_TRUE(sample.isfinite().all().item<bool>());
  }
}

TEST_P(SchedulerContract, SetTimestepsForgetsTheRunBefore) {
  const auto scheduler = make();
  const torch::Tensor first = run(*scheduler, 8);
  run(*scheduler, 5);
  EXPECT_TRUE(torch::equal(run(*scheduler, 8), first));
}

TEST_P(SchedulerContract, StartsFromUnitNoiseAtLeast) {
  const auto scheduler = make();
  scheduler->set_timesteps(10);
  EXPECT_GE(scheduler->init_noise_sigma(), 1.0);
  EXPECT_LT(scheduler->init_noise_sigma(), 20.0);
}

TEST_P(SchedulerContract, RemovesTheNoiseThatAnOracleSees) {
  // A model that knows x0 leads back to it, from any scheduler's own noising; the mutant sees half of the noise.
  Json config = stable_diffusion_config();
  config["set_alpha_to_one"] = true;
  const auto scheduler = make(config);
  const torch::Tensor x0 = seeded({1, 4, 3, 5}, 11) * 0.5;
  const auto error_of = [&](double share_seen) {
    scheduler->set_timesteps(20);
    const torch::Tensor timesteps = scheduler->timesteps();
    GeneratorNoise noise(make_cpu_generator(5));
    torch::Tensor sample = scheduler->add_noise(x0, seeded({1, 4, 3, 5}, 13), timesteps.slice(0, 0, 1));
    for (std::int64_t i = 0; i < timesteps.size(0); ++i) {
      const double t = timesteps[i].item<double>();
      const torch::Tensor abar = scheduler->noise_schedule().alphas_cumprod[static_cast<std::int64_t>(std::lround(t))];
      const torch::Tensor input = scheduler->scale_model_input(sample, t);
      const torch::Tensor epsilon = (input - abar.sqrt() * x0) / (1 - abar).sqrt();
      sample = scheduler->step(share_seen * epsilon, t, sample, noise);
    }
    return (sample - x0).abs().max().item<double>();
  };
  EXPECT_LT(error_of(1.0), 0.1);
  EXPECT_GT(error_of(0.5), 0.1);
}

TEST_P(SchedulerContract, AddsMoreNoiseAtHigherTimesteps) {
  const auto scheduler = make();
  scheduler->set_timesteps(20);
  const torch::Tensor x0 = torch::zeros({2, 4, 3, 5});
  const torch::Tensor noise = seeded({2, 4, 3, 5}, 2);
  const torch::Tensor t = torch::stack({scheduler->timesteps()[2], scheduler->timesteps()[-2]});
  const torch::Tensor noisy = scheduler->add_noise(x0, noise, t);
  EXPECT_GT((noisy[0] / noise[0]).mean().item<double>(), 2 * (noisy[1] / noise[1]).mean().item<double>());
}

TEST_P(SchedulerContract, AddsNoiseOfOneTimestepToTheWholeBatch) {
  const auto scheduler = make();
  scheduler->set_timesteps(20);
  const torch::Tensor x0 = seeded({3, 4, 3, 5}, 1);
  const torch::Tensor noise = seeded({3, 4, 3, 5}, 2);
  const torch::Tensor t = scheduler->timesteps().slice(0, 5, 6);
  const torch::Tensor all = scheduler->add_noise(x0, noise, t);
  EXPECT_EQ(all.sizes(), x0.sizes());
  EXPECT_TRUE(torch::allclose(all, scheduler->add_noise(x0, noise, t.expand({3})), 1e-6, 1e-6));
  const torch::Tensor other = scheduler->timesteps().slice(0, 9, 10);
  EXPECT_FALSE(torch::allclose(all, scheduler->add_noise(x0, noise, other), 1e-3, 1e-3));
  EXPECT_THROW(scheduler->add_noise(x0, noise, t.expand({2})), c10::Error);
}

TEST_P(SchedulerContract, RefusesWrongCalls) {
  const auto scheduler = make();
  FixedNoise noise(torch::zeros({1, 4, 2, 2}));
  const torch::Tensor sample = torch::zeros({1, 4, 2, 2});
  EXPECT_THROW(scheduler->step(sample, 999, sample, noise), c10::Error);
  EXPECT_THROW(scheduler->scale_model_input(sample, 999), c10::Error);
  EXPECT_THROW(scheduler->set_timesteps(0), ConfigError);
  EXPECT_THROW(scheduler->set_timesteps(1001), ConfigError);
  scheduler->set_timesteps(4);
  const double t = scheduler->timesteps()[0].item<double>();
  EXPECT_THROW(scheduler->step(sample, -1.5, sample, noise), c10::Error);
  EXPECT_THROW(scheduler->step(torch::zeros({1, 4, 2, 3}), t, sample, noise), c10::Error);
}

TEST_P(SchedulerContract, NamesWhatItDoesNotSupport) {
  const auto error_of = [&](const Json& config) -> std::string {
    try {
      make(config);
    } catch (const WeightError& error) {
      return error.problems().front().line();
    }
    return "";
  };
  EXPECT_NE(error_of({{"beta_shedule", "linear"}}).find("beta_schedule"), std::string::npos);
  EXPECT_NE(error_of({{"beta_schedule", "quadratic"}}).find("scaled_linear"), std::string::npos);
  EXPECT_NE(error_of({{"timestep_spacing", "logspace"}}).find("trailing"), std::string::npos);
  EXPECT_NE(error_of({{"num_train_timesteps", "many"}}).find("whole number"), std::string::npos);
  EXPECT_NE(error_of({{"beta_end", -0.5}}).find("beta_end"), std::string::npos);
  EXPECT_EQ(error_of({{"skip_prk_steps", true}, {"use_karras_sigmas", false}, {"_diffusers_version", "0.6"}}), "");
}

INSTANTIATE_TEST_SUITE_P(All, SchedulerContract, testing::ValuesIn(scheduler_class_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sdtune::model
