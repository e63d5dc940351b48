#include "train/optim/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "model/base/error.h"

namespace sdtune::train {
namespace {

// tests/python/test_training.py compares all six with diffusers' own; here are their corners.
LrSchedule schedule_of(const std::string& name, std::int64_t warmup, std::int64_t total) {
  OptimOptions options;
  options.learning_rate = 1e-3;
  options.lr_scheduler = name;
  options.lr_warmup_steps = warmup;
  options.lr_num_cycles = 3;
  options.lr_power = 2.0;
  return LrSchedule::from_options(options, total, 1);
}

TEST(LrSchedule, RisesFromZeroInTheWarmUp) {
  for (const char* name : {"linear", "cosine", "cosine_with_restarts", "polynomial", "constant_with_warmup"}) {
    const LrSchedule schedule = schedule_of(name, 10, 100);
    EXPECT_EQ(schedule.factor(0), 0.0) << name;
    EXPECT_DOUBLE_EQ(schedule.factor(5), 0.5) << name;
    EXPECT_NEAR(schedule.factor(10), 1.0, 1e-12) << name;
  }
}

TEST(LrSchedule, ConstantHasNoWarmUp) {
  EXPECT_EQ(schedule_of("constant", 10, 100).factor(0), 1.0);
}

TEST(LrSchedule, EndsWhereItsCurveEnds) {
  EXPECT_EQ(schedule_of("linear", 0, 100).factor(100), 0.0);
  EXPECT_NEAR(schedule_of("cosine", 0, 100).factor(100), 0.0, 1e-12);
  EXPECT_EQ(schedule_of("cosine_with_restarts", 0, 100).factor(100), 0.0);
  EXPECT_NEAR(schedule_of("polynomial", 0, 100).factor(100), 1e-7 / 1e-3, 1e-15);
  EXPECT_NEAR(schedule_of("polynomial", 0, 100).factor(101), 1e-7 / 1e-3, 1e-15);
}

TEST(LrSchedule, RestartsAtFullRate) {
  const LrSchedule schedule = schedule_of("cosine_with_restarts", 0, 90);  // three cycles of 30
  EXPECT_NEAR(schedule.factor(30), 1.0, 1e-9);
  EXPECT_NEAR(schedule.factor(45), 0.5, 1e-9);
}

TEST(LrSchedule, PolynomialFollowsItsPower) {
  const double expected = ((1e-3 - 1e-7) * 0.25 + 1e-7) / 1e-3;
  EXPECT_NEAR(schedule_of("polynomial", 0, 100).factor(50), expected, 1e-12);
}

TEST(LrSchedule, ScalesTheRatesByTheEffectiveBatch) {
  OptimOptions options;
  options.learning_rate = 1e-5;
  options.text_encoder_lr = 2e-6;
  EXPECT_EQ(base_rates(options, 8), (std::vector<double>{1e-5, 2e-6}));
  options.scale_lr = true;
  EXPECT_EQ(base_rates(options, 8), (std::vector<double>{8e-5, 16e-6}));
}

TEST(LrSchedule, RefusesARateThatPolynomialCannotReach) {
  OptimOptions options;
  options.lr_scheduler = "polynomial";
  options.learning_rate = 1e-8;
  try {
    LrSchedule::from_options(options, 10, 1);
    FAIL() << "it is taken";
  } catch (const ConfigError& error) {
    EXPECT_NE(error.problems().front().what.find("(got 1e-08)"), std::string::npos) << error.what();
  }
  EXPECT_THROW(parse_lr_curve("square"), ConfigError);
}

TEST(TextEncoderSteps, AreAShareOfTheSteps) {
  OptimOptions options;
  EXPECT_EQ(text_encoder_steps(options, 300), 300);
  options.train_text_encoder_frac = 0.3;
  EXPECT_EQ(text_encoder_steps(options, 300), 90);
  options.train_text_encoder_frac = 0.29;
  EXPECT_EQ(text_encoder_steps(options, 100), 29);  // 28.999999999999996 in binary
}

}  // namespace
}  // namespace sdtune::train
