#include "app/commands/sampler_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/schedule/scheduler.h"

namespace sdtune::app {
namespace {

TEST(SamplerNames, EachIsASchedulerOfTheLibrary) {
  for (const std::string& name : sampler_names()) {
    const Sampler sampler = find_sampler(name);
    // Over the scheduler_config.json of Stable Diffusion 1.5: keys of another class pass, as in diffusers.
    Json config = Json::parse(R"({"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear",
      "num_train_timesteps": 1000, "set_alpha_to_one": false, "skip_prk_steps": true, "steps_offset": 1,
      "trained_betas": null, "clip_sample": false})");
    config.update(sampler.changes);
    const auto scheduler = model::make_scheduler(sampler.class_name, config);
    scheduler->set_timesteps(10);
    EXPECT_GE(scheduler->timesteps().numel(), 10) << name;
    EXPECT_EQ(scheduler->config().value("use_karras_sigmas", false), name.ends_with("_karras")) << name;
  }
}

TEST(SamplerNames, HoldWhatTheHandbookNames) {
  EXPECT_THAT(sampler_names(),
              ::testing::IsSupersetOf({"ddim", "ddpm", "pndm", "euler", "euler_a", "dpm++2m", "dpm++2m_sde",
                                       "euler_karras", "dpm++2m_karras", "dpm++2m_sde_karras"}));
  EXPECT_EQ(find_sampler("dpm++2m_sde_karras").changes.at("algorithm_type"), "sde-dpmsolver++");
  EXPECT_THROW(find_sampler("dpm"), std::logic_error);
}

}  // namespace
}  // namespace sdtune::app
