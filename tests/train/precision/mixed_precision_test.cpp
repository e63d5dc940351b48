#include "train/precision/mixed_precision.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

TEST(ResolveMixedPrecision, KeepsWhatIsAskedFor) {
  for (const char* asked : {"no", "bf16", "fp16"}) {
    EXPECT_EQ(resolve_mixed_precision(asked, torch::kCPU, "bf16"), asked);
  }
}

TEST(ResolveMixedPrecision, TakesFloat32OnACpuAndTheCheckpointsFormatWhenResuming) {
  EXPECT_EQ(resolve_mixed_precision("auto", torch::kCPU, ""), "no");
  EXPECT_EQ(resolve_mixed_precision("auto", torch::kCPU, "bf16"), "bf16");
  EXPECT_EQ(resolve_mixed_precision("auto", torch::kCPU, "no"), "no");
}

}  // namespace
}  // namespace sdtune::train
