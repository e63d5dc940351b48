// What single schedulers accept and refuse.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>
#include <string>

#include "model/base/error.h"
#include "model/schedule/scheduler.h"

namespace sdtune::model {
namespace {

std::string error_of(const std::string& class_name, const Json& config) {
  try {
    make_scheduler(class_name, config);
  } catch (const WeightError& error) {
    return error.problems().front().line();
  }
  return "";
}

TEST(SchedulerOptions, UnknownClassNamesTheNearestAndAllSupported) {
  const std::string line = error_of("EulerDiscretScheduler", Json::object());
  EXPECT_NE(line.find("did you mean EulerDiscreteScheduler"), std::string::npos) << line;
  EXPECT_NE(line.find("PNDMScheduler"), std::string::npos) << line;
  EXPECT_NE(error_of("SASolverScheduler", Json::object()).find("DPMSolverMultistepScheduler"), std::string::npos);
}

TEST(SchedulerOptions, ThresholdingIsRefusedByName) {
  for (const char* name :
       {"DDPMScheduler", "DDIMScheduler", "DPMSolverMultistepScheduler", "UniPCMultistepScheduler"}) {
    EXPECT_NE(error_of(name, {{"thresholding", true}}).find("thresholding"), std::string::npos);
  }
}

TEST(SchedulerOptions, PndmPredictsNoSample) {
  EXPECT_NE(error_of("PNDMScheduler", {{"prediction_type", "sample"}}).find("v_prediction"), std::string::npos);
  EXPECT_EQ(error_of("DDIMScheduler", {{"prediction_type", "sample"}}), "");
}

TEST(SchedulerOptions, OneSigmaCurveAtMost) {
  EXPECT_NE(error_of("EulerDiscreteScheduler", {{"use_karras_sigmas", true}, {"use_exponential_sigmas", true}})
                .find("one of them"),
            std::string::npos);
}

TEST(SchedulerOptions, NullIsTheDefault) {
  const auto scheduler =
      make_scheduler("DPMSolverMultistepScheduler", {{"lambda_min_clipped", nullptr}, {"solver_order", nullptr}});
  EXPECT_EQ(scheduler->config()["solver_order"], 2);
  EXPECT_EQ(scheduler->config()["lambda_min_clipped"].get<double>(), -std::numeric_limits<double>::infinity());
}

TEST(SchedulerOptions, DefaultsDoNotTravelToAnotherClass) {
  // PNDM's default spacing is leading, DPM-Solver's linspace; only a spacing that was given is carried over.
  const auto pndm = make_scheduler("PNDMScheduler", {{"beta_end", 0.012}});
  const auto dpm = make_scheduler("DPMSolverMultistepScheduler", pndm->config());
  EXPECT_EQ(dpm->config()["timestep_spacing"], "linspace");
  EXPECT_EQ(dpm->config()["beta_end"], 0.012);
  const auto given = make_scheduler("PNDMScheduler", {{"timestep_spacing", "leading"}, {"skip_prk_steps", true}});
  const auto other = make_scheduler("DPMSolverMultistepScheduler", given->config());
  EXPECT_EQ(other->config()["timestep_spacing"], "leading");
  EXPECT_EQ(make_scheduler("PNDMScheduler", other->config())->config()["skip_prk_steps"], true);
}

TEST(SchedulerOptions, KeysOfAnotherClassHaveNoEffect) {
  const Json foreign = {{"rescale_betas_zero_snr", true}, {"use_lu_lambdas", true}};
  for (const char* name : {"PNDMScheduler", "HeunDiscreteScheduler", "LMSDiscreteScheduler"}) {
    const auto plain = make_scheduler(name, Json::object());
    const auto mixed = make_scheduler(name, foreign);
    plain->set_timesteps(7);
    mixed->set_timesteps(7);
    EXPECT_TRUE(torch::equal(plain->noise_schedule().alphas_cumprod, mixed->noise_schedule().alphas_cumprod)) << name;
    EXPECT_TRUE(torch::equal(plain->timesteps(), mixed->timesteps())) << name;
    EXPECT_EQ(mixed->config()["use_lu_lambdas"], true) << name;
  }
}

// A saved config of DDPM has its variance given, which DPM-Solver's key of the same name does not mean.
TEST(SchedulerOptions, VariancesOfDdpmPassIntoDpmSolver) {
  for (const char* variance : {"fixed_small", "fixed_small_log", "fixed_large"}) {
    EXPECT_EQ(error_of("DPMSolverMultistepScheduler", {{"variance_type", variance}}), "") << variance;
  }
  EXPECT_NE(error_of("DPMSolverMultistepScheduler", {{"variance_type", "learned"}}).find("variance_type"),
            std::string::npos);
}

TEST(SchedulerOptions, EpsilonAsDiffusersOnceWroteIt) {
  const auto scheduler = make_scheduler("DPMSolverMultistepScheduler", {{"predict_epsilon", true}});
  EXPECT_EQ(scheduler->config()["prediction_type"], "epsilon");
  EXPECT_FALSE(scheduler->config().contains("predict_epsilon"));
  EXPECT_NE(error_of("DPMSolverMultistepScheduler", {{"predict_epsilon", false}}).find("predict_epsilon"),
            std::string::npos);
}

TEST(SchedulerOptions, UniPcTakesListsOfSteps) {
  EXPECT_EQ(error_of("UniPCMultistepScheduler", {{"disable_corrector", {0, 3}}}), "");
  EXPECT_NE(error_of("UniPCMultistepScheduler", {{"disable_corrector", 3}}).find("list of whole numbers"),
            std::string::npos);
  EXPECT_NE(error_of("UniPCMultistepScheduler", {{"solver_order", 4}}).find("1, 2, 3"), std::string::npos);
  EXPECT_NE(error_of("UniPCMultistepScheduler", {{"use_flow_sigmas", true}}).find("use_flow_sigmas"),
            std::string::npos);
}

TEST(SchedulerOptions, UniPcIsFiniteWhereTheLastSigmaIsZero) {
  for (const Json& config : {Json::object({{"solver_type", "bh1"}}), Json::object({{"predict_x0", false}}),
                             Json::object({{"lower_order_final", false}, {"solver_order", 3}})}) {
    const auto scheduler = make_scheduler("UniPCMultistepScheduler", config);
    scheduler->set_timesteps(6);
    FixedNoise noise(torch::zeros({1, 4, 2, 2}));
    torch::Tensor sample = torch::ones({1, 4, 2, 2});
    for (std::int64_t i = 0; i < 6; ++i) {
      sample = scheduler->step(sample.sin(), scheduler->timesteps()[i].item<double>(), sample, noise);
    }
    EXPECT_TRUE(sample.isfinite().all().item<bool>()) << config;
  }
}

// From sigmas of about 20000 the root of the fresh noise's variance may be rounded above the next sigma.
TEST(SchedulerOptions, EulerAncestralIsFiniteFromVeryHighSigmas) {
  for (std::int64_t train_timesteps = 980; train_timesteps <= 1000; ++train_timesteps) {
    for (const char* spacing : {"trailing", "linspace", "leading"}) {
      const auto scheduler =
          make_scheduler("EulerAncestralDiscreteScheduler", {{"beta_schedule", "squaredcos_cap_v2"},
                                                             {"num_train_timesteps", train_timesteps},
                                                             {"timestep_spacing", spacing}});
      for (const std::int64_t steps : {3, 4, 6, 7}) {
        scheduler->set_timesteps(steps);
        FixedNoise noise(torch::ones({1, 1, 2, 2}));
        torch::Tensor sample = torch::ones({1, 1, 2, 2}) * scheduler->init_noise_sigma();
        for (std::int64_t i = 0; i < steps; ++i) {
          sample = scheduler->step(sample.sin(), scheduler->timesteps()[i].item<double>(), sample, noise);
        }
        EXPECT_TRUE(sample.isfinite().all().item<bool>()) << train_timesteps << " " << spacing << " " << steps;
      }
    }
  }
}

TEST(SchedulerOptions, RefusalOfTimestepsNamesTheClassesThatTakeThem) {
  const auto refusal = [](const std::string& class_name) -> std::string {
    try {
      make_scheduler(class_name, Json::object())->set_timesteps({900, 20});
    } catch (const ConfigError& error) {
      return error.problems().front().line();
    }
    return "";
  };
  const std::string line = refusal("DDIMScheduler");
  const std::string allowed = line.substr(line.find("allowed"));
  for (const std::string& name : scheduler_class_names()) {
    EXPECT_EQ(allowed.find(name) != std::string::npos, refusal(name).empty()) << name;
  }
}

TEST(SchedulerOptions, OffsetBeyondTheTableIsNamed) {
  const auto scheduler = make_scheduler("DDIMScheduler", {{"steps_offset", 1}});
  EXPECT_THROW(scheduler->set_timesteps(1000), ConfigError);
  EXPECT_NO_THROW(scheduler->set_timesteps(999));
}

TEST(SchedulerOptions, RungeKuttaNeedsFourSteps) {
  const auto scheduler = make_scheduler("PNDMScheduler", Json::object());
  EXPECT_THROW(scheduler->set_timesteps(3), ConfigError);
  scheduler->set_timesteps(4);
  EXPECT_EQ(scheduler->timesteps().size(0), 13);
}

TEST(NoiseSource, ListOfGeneratorsDrawsASampleEach) {
  GeneratorNoise both({make_cpu_generator(1), make_cpu_generator(2)});
  GeneratorNoise second(make_cpu_generator(2));
  const torch::Tensor pair = both.draw({2, 3, 4}, torch::kFloat32, torch::kCPU);
  EXPECT_TRUE(torch::equal(pair[1], second.draw({1, 3, 4}, torch::kFloat32, torch::kCPU)[0]));
  EXPECT_THROW(both.draw({3, 3, 4}, torch::kFloat32, torch::kCPU), c10::Error);
}

TEST(NoiseSource, FixedNoiseMustFit) {
  FixedNoise noise(torch::ones({1, 2}));
  EXPECT_TRUE(torch::equal(noise.draw({1, 2}, torch::kFloat32, torch::kCPU), torch::ones({1, 2})));
  EXPECT_THROW(noise.draw({2, 2}, torch::kFloat32, torch::kCPU), c10::Error);
}

}  // namespace
}  // namespace sdtune::model
