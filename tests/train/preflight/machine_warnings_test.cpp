#include "train/preflight/machine_warnings.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

TEST(FormatWarning, IsOfBfloat16OnAnOlderGpu) {
  const model::CudaDeviceInfo old_gpu{"Tesla T4", 75, 0}, new_gpu{"NVIDIA L4", 89, 0};
  TrainConfig config;
  for (const char* format : {"default", "auto", "no", "fp16"}) {
    config.precision.mixed_precision = format;
    EXPECT_FALSE(format_warning(config, "", old_gpu)) << format;
  }
  config.precision.mixed_precision = "bf16";
  EXPECT_FALSE(format_warning(config, "", new_gpu));
  const std::optional<Problem> given = format_warning(config, "", old_gpu);
  ASSERT_TRUE(given);
  EXPECT_NE(given->line().find("Tesla T4 (compute capability 7.5)"), std::string::npos) << given->line();
  EXPECT_NE(given->hint.find("default is fp16"), std::string::npos) << given->hint;
}

// A run that began on another machine keeps the format of its checkpoint, which no option names.
TEST(FormatWarning, IsOfAResumedRunToo) {
  const model::CudaDeviceInfo old_gpu{"Tesla T4", 75, 0};
  TrainConfig config;
  config.precision.mixed_precision = "default";
  EXPECT_FALSE(format_warning(config, "fp16", old_gpu));
  const std::optional<Problem> resumed = format_warning(config, "bf16", old_gpu);
  ASSERT_TRUE(resumed);
  EXPECT_NE(resumed->hint.find("keeps its format"), std::string::npos) << resumed->hint;
}

TEST(ThreadsWarning, IsOfMoreThreadsThanTheQuotaAllows) {
  EXPECT_FALSE(threads_warning(128, std::nullopt));
  EXPECT_FALSE(threads_warning(8, 8.0));
  EXPECT_FALSE(threads_warning(8, 7.6));
  EXPECT_FALSE(threads_warning(1, 0.5));
  const std::optional<Problem> many = threads_warning(128, 8.0);
  ASSERT_TRUE(many);
  EXPECT_NE(many->line().find("with 128 threads"), std::string::npos) << many->line();
  EXPECT_NE(many->line().find("quota of cores is 8"), std::string::npos) << many->line();
  EXPECT_EQ(many->hint, "set OMP_NUM_THREADS=8");
  EXPECT_EQ(threads_warning(2, 0.5)->hint, "set OMP_NUM_THREADS=1");
}

}  // namespace
}  // namespace sdtune::train
