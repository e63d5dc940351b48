#include "train/portrait/pretrain/pretrain.h"

#include <gtest/gtest.h>

#include "model/base/error.h"

namespace sdtune::train::pretrain {
namespace {

// A T4 is fastest in float16, which no stage can train in: there is no loss scaling.
TEST(PretrainDtype, AutoTakesNoFloat16) {
  EXPECT_EQ(pretrain_dtype("auto", torch::kBFloat16), torch::kBFloat16);
  EXPECT_EQ(pretrain_dtype("auto", torch::kFloat16), torch::kFloat32);
  EXPECT_EQ(pretrain_dtype("auto", torch::kFloat32), torch::kFloat32);
  EXPECT_EQ(pretrain_dtype("bf16", torch::kFloat16), torch::kBFloat16);
  EXPECT_THROW(pretrain_dtype("fp8", torch::kFloat32), ConfigError);
}

}  // namespace
}  // namespace sdtune::train::pretrain
