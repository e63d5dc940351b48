#include "model/generate/sampler_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/schedule/align_your_steps.h"
#include "model/schedule/scheduler.h"

namespace sdtune::model {
namespace {

// Over the scheduler_config.json of Stable Diffusion 1.5: keys of another class pass, as in diffusers.
std::unique_ptr<Scheduler> make(const Sampler& sampler) {
  Json config = Json::parse(R"({"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear",
      "num_train_timesteps": 1000, "set_alpha_to_one": false, "skip_prk_steps": true, "steps_offset": 1,
      "trained_betas": null, "clip_sample": false})");
  config.update(sampler.changes);
  auto scheduler = make_scheduler(sampler.class_name, config);
  if (sampler.aligns_its_steps) {
    scheduler->set_timesteps(align_your_steps(scheduler->noise_schedule(), false, 10));
  } else {
    scheduler->set_timesteps(10);
  }
  return scheduler;
}

TEST(SamplerNames, EachIsASchedulerOfTheLibrary) {
  for (const std::string& name : sampler_names()) {
    const auto scheduler = make(find_sampler(name));
    const Json& config = scheduler->config();
    EXPECT_GE(scheduler->timesteps().numel(), 10) << name;
    EXPECT_EQ(config.value("use_karras_sigmas", false), name.ends_with("_karras")) << name;
    EXPECT_EQ(config.value("use_exponential_sigmas", false), name.ends_with("_exponential")) << name;
    EXPECT_EQ(config.value("timestep_spacing", "") == "trailing", name.ends_with("_trailing")) << name;
    if (name.ends_with("_ays")) {
      EXPECT_EQ(scheduler->timesteps()[1].item<double>(), 850) << name;
    }
  }
}

TEST(SamplerNames, EverySchedulerAndNoneTwice) {
  const std::vector<std::string> names = sampler_names();
  std::set<std::string> classes;
  for (const std::string& name : names) classes.insert(find_sampler(name).class_name);
  const std::vector<std::string>& known = scheduler_class_names();
  EXPECT_EQ(classes, std::set<std::string>(known.begin(), known.end()));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

TEST(SamplerNames, EachRunsAnotherWay) {
  // No two names are the same levels of noise under the same class and algorithm.
  std::set<std::string> runs;
  for (const std::string& name : sampler_names()) {
    const Sampler sampler = find_sampler(name);
    const auto scheduler = make(sampler);
    std::string run = sampler.class_name + sampler.changes.value("algorithm_type", "");
    for (std::int64_t i = 0; i < scheduler->timesteps().numel(); ++i) {
      run.append(" ").append(std::to_string(scheduler->timesteps()[i].item<double>()));
    }
    EXPECT_TRUE(runs.insert(run).second) << name;
  }
}

TEST(SamplerNames, HoldWhatTheHandbookNames) {
  EXPECT_THAT(sampler_names(),
              ::testing::IsSupersetOf({"ddim", "ddpm", "pndm", "euler", "euler_a", "dpm++2m", "dpm++2m_sde", "heun",
                                       "lms", "dpm++sde", "unipc", "deis", "lcm", "euler_karras", "dpm++2m_karras",
                                       "dpm++2m_sde_karras", "heun_exponential", "euler_a_trailing", "dpm++2m_ays"}));
  EXPECT_THAT(sampler_names(), ::testing::Not(::testing::Contains("ddim_karras")));
  EXPECT_EQ(find_sampler("dpm++2m_sde_karras").changes.at("algorithm_type"), "sde-dpmsolver++");
  EXPECT_THROW(find_sampler("dpm"), std::logic_error);
  EXPECT_THROW(find_sampler("ddim_karras"), std::logic_error);
}

}  // namespace
}  // namespace sdtune::model
