#include "model/schedule/sigma_spacing.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/schedule/scheduler.h"

namespace sdtune::model {
namespace {

// What set_timesteps says; "" where it takes the number.
std::string refusal_of_steps(const std::string& class_name, const Json& config, std::int64_t steps) {
  try {
    make_scheduler(class_name, config)->set_timesteps(steps);
  } catch (const ConfigError& error) {
    return error.problems().front().line();
  }
  return "";
}

TEST(SigmaTable, OfOneTimestepHasNoOther) {
  for (const float abar : {0.05F, 0.3F, 0.7F, 0.95F}) {
    const SigmaTable table(torch::tensor({abar}, torch::kFloat32));
    for (const double factor : {0.25, 1.0, 1.5, 4.0}) {
      EXPECT_EQ(table.timesteps_of({factor * table.first()}), (std::vector<double>{0})) << abar << " " << factor;
    }
  }
  const auto scheduler =
      make_scheduler("EulerDiscreteScheduler", {{"num_train_timesteps", 1}, {"use_karras_sigmas", true}});
  scheduler->set_timesteps(1);
  EXPECT_TRUE(torch::equal(scheduler->timesteps(), torch::zeros({1})));
}

TEST(SigmaCurve, HasNoEndThatIsNotAboveZero) {
  for (const char* curve : {"use_karras_sigmas", "use_exponential_sigmas"}) {
    for (const char* end : {"sigma_min", "sigma_max"}) {
      for (const double sigma : {-1.0, 0.0}) {
        const std::string line = refusal_of_steps("EulerDiscreteScheduler", {{curve, true}, {end, sigma}}, 4);
        EXPECT_NE(line.find(std::string(end) + ": is no noise level of a curve"), std::string::npos) << line;
      }
      EXPECT_EQ(refusal_of_steps("EulerDiscreteScheduler", {{curve, true}, {end, 2.0}}, 4), "");
    }
  }
  EXPECT_EQ(refusal_of_steps("EulerDiscreteScheduler", {{"sigma_min", -1.0}}, 4), "");  // of no effect
}

TEST(DistinctSigmas, AreAskedForWhereASolverDividesByTheirDistance) {
  const Json leading = {{"timestep_spacing", "leading"}, {"steps_offset", 1}};
  for (const char* name : {"LMSDiscreteScheduler", "DPMSolverSDEScheduler", "DPMSolverMultistepScheduler",
                           "UniPCMultistepScheduler", "DEISMultistepScheduler"}) {
    const std::string line = refusal_of_steps(name, leading, 1000);
    EXPECT_NE(line.find("num_inference_steps"), std::string::npos) << name << line;
    EXPECT_NE(line.find("got 1000; allowed: fewer"), std::string::npos) << name << line;
    EXPECT_EQ(refusal_of_steps(name, leading, 900), "") << name;
    EXPECT_EQ(refusal_of_steps(name, {{"timestep_spacing", "trailing"}}, 1000), "") << name;
    EXPECT_EQ(refusal_of_steps(name, {{"use_karras_sigmas", true}}, 1000), "") << name;
  }
  for (const char* name : {"DPMSolverMultistepScheduler", "UniPCMultistepScheduler", "DEISMultistepScheduler"}) {
    EXPECT_NE(refusal_of_steps(name, Json::object(), 1000), "") << name;  // linspace, rounded
    EXPECT_EQ(refusal_of_steps(name, Json::object(), 999), "") << name;
    EXPECT_EQ(refusal_of_steps(name, {{"solver_order", 1}}, 1000), "") << name;
  }
  EXPECT_EQ(refusal_of_steps("EulerDiscreteScheduler", leading, 1000), "");
}

// The largest numbers of steps that are taken, with a model that sees what it is given.
TEST(DistinctSigmas, GiveNumbers) {
  for (const char* name : {"DPMSolverMultistepScheduler", "UniPCMultistepScheduler", "DEISMultistepScheduler"}) {
    const auto scheduler = make_scheduler(name, Json::object());
    scheduler->set_timesteps(999);
    FixedNoise none(torch::zeros({1, 1, 2, 2}));
    torch::Tensor sample = torch::linspace(-1, 1, 4).view({1, 1, 2, 2});
    for (std::int64_t i = 0; i < 999; ++i) {
      sample = scheduler->step(sample.sin(), scheduler->timesteps()[i].item<double>(), sample, none);
    }
    EXPECT_TRUE(sample.isfinite().all().item<bool>()) << name;
  }
}

TEST(ClippedLambdas, LeaveATimestepAtLeast) {
  const char* name = "DPMSolverMultistepScheduler";
  for (const char* spacing : {"linspace", "leading", "trailing"}) {
    const std::string line = refusal_of_steps(name, {{"lambda_min_clipped", 100}, {"timestep_spacing", spacing}}, 4);
    EXPECT_NE(line.find("lambda_min_clipped"), std::string::npos) << spacing << line;
    EXPECT_NE(line.find("got 100; allowed: at most 4.6"), std::string::npos) << spacing << line;
    EXPECT_EQ(refusal_of_steps(name, {{"lambda_min_clipped", -5.1}, {"timestep_spacing", spacing}}, 4), "") << spacing;
  }
}

}  // namespace
}  // namespace sdtune::model
