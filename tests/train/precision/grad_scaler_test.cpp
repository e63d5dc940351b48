#include "train/precision/grad_scaler.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/base/error.h"
#include "train/precision/non_finite_guard.h"

namespace sdtune::train {
namespace {

torch::Tensor norm(double value) {
  return torch::scalar_tensor(value, torch::kFloat32);
}

TEST(GradScaler, StaysAtOneWhenDisabled) {
  GradScaler scaler(false, torch::kCPU);
  scaler.update(norm(INFINITY));
  EXPECT_EQ(scaler.state().scale, 1.0);
}

TEST(GradScaler, HalvesAfterAnOverflow) {
  GradScaler scaler(true, torch::kCPU);
  const double first = scaler.state().scale;
  scaler.update(norm(1.0));
  scaler.update(norm(NAN));
  EXPECT_EQ(scaler.state().scale, first / 2);
  EXPECT_EQ(scaler.state().good_steps, 0);
}

TEST(GradScaler, DoublesAfterTwoThousandGoodSteps) {
  GradScaler scaler(true, torch::kCPU);
  scaler.load({1024.0, 1998});
  scaler.update(norm(1.0));
  EXPECT_EQ(scaler.state().scale, 1024.0);
  scaler.update(norm(1.0));
  EXPECT_EQ(scaler.state().scale, 2048.0);
  EXPECT_EQ(scaler.state().good_steps, 0);
}

TEST(NonFiniteGuard, CountsStepsInARowOnly) {
  NonFiniteGuard guard(2);
  guard.observe(true);
  guard.observe(false);
  guard.observe(true);
  EXPECT_FALSE(guard.exhausted());
  guard.observe(true);
  EXPECT_TRUE(guard.exhausted());
  try {
    guard.fail(7, "unet.conv_in.weight", "runs/me/checkpoints/step-00000005");
    FAIL();
  } catch (const NonFiniteError& error) {
    EXPECT_EQ(error.code(), ExitCode::kNonFinite);
    const std::string line = error.problems().front().line();
    for (const char* part : {"step 7", "unet.conv_in.weight", "step-00000005"}) {
      EXPECT_NE(line.find(part), std::string::npos) << line;
    }
  }
}

}  // namespace
}  // namespace sdtune::train
