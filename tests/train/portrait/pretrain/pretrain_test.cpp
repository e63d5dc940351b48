#include "train/portrait/pretrain/pretrain.h"

#include <gtest/gtest.h>

#include "model/base/error.h"

namespace sdtune::train::pretrain {
namespace {

// A T4 is fastest in float16, which no stage can train in: there is no loss scaling.
TEST(PretrainDtype, AutoTakesNoFloat16) {
  EXPECT_EQ(pretrain_dtype(torch::kBFloat16), torch::kBFloat16);
  EXPECT_EQ(pretrain_dtype(torch::kFloat16), torch::kFloat32);
  EXPECT_EQ(pretrain_dtype(torch::kFloat32), torch::kFloat32);
}

}  // namespace
}  // namespace sdtune::train::pretrain
