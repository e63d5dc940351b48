#include "train/precision/mixed_precision.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

TEST(ResolveMixedPrecision, KeepsWhatIsAskedFor) {
  for (const char* asked : {"no", "bf16", "fp16"}) {
    EXPECT_EQ(resolve_mixed_precision(asked, torch::kCPU, "bf16"), asked);
  }
}

TEST(ResolveMixedPrecision, DefaultIsFloat32OnACpu) {
  EXPECT_EQ(resolve_mixed_precision("default", torch::kCPU, ""), "no");
}

TEST(ResolveMixedPrecision, TakesTheCheckpointsFormatWhenResuming) {
  for (const char* asked : {"default", "auto"}) {
    EXPECT_TRUE(is_left_to_device(asked));
    EXPECT_EQ(resolve_mixed_precision(asked, torch::kCPU, "bf16"), "bf16");
    EXPECT_EQ(resolve_mixed_precision(asked, torch::kCPU, "no"), "no");
  }
}

}  // namespace
}  // namespace sdtune::train
