#include "model/core/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"
#include "model/core/cuda_driver.h"

namespace sdtune::model {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text) {
  try {
    parse_device(text, "device");
  } catch (const ConfigError& error) {
    return error.problems().front().line();
  }
  return "";
}

TEST(ParseDevice, KnowsTheCpuAndRefusesOtherWords) {
  EXPECT_TRUE(parse_device("cpu", "device").is_cpu());
  for (const char* word : {"gpu", "", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "CPU"}) {
    EXPECT_THAT(error_of(word), HasSubstr("allowed: auto, cpu, cuda, cuda:N")) << word;
  }
}

TEST(ParseDevice, SaysWhyThereIsNoGpuAndAutoFallsBack) {
  if (why_no_cuda().empty()) GTEST_SKIP() << "this machine has a usable GPU";
  EXPECT_TRUE(parse_device("auto", "device").is_cpu());
  EXPECT_THAT(error_of("cuda"), HasSubstr("device: "));
  EXPECT_THAT(error_of("cuda:3"), HasSubstr("(got cuda:3)"));
}

TEST(ParseDtype, KnowsOurNamesAndDiffusers) {
  EXPECT_EQ(parse_dtype("no", "x"), torch::kFloat32);
  EXPECT_EQ(parse_dtype("bf16", "x"), torch::kBFloat16);
  EXPECT_EQ(parse_dtype("float16", "x"), torch::kFloat16);
  EXPECT_THROW(parse_dtype("fp8", "mixed_precision"), ConfigError);
  EXPECT_EQ(dtype_name(torch::kBFloat16), "bfloat16");
}

TEST(CudaDriver, NamesWhatIsTooOldAndWhatIsNeeded) {
  CudaDriver old;
  old.version = 12040;
  old.devices = {{"GPU", 90, 0}};
  EXPECT_THAT(why_unusable(old), HasSubstr("supports CUDA 12.4, and CUDA 13.0 (driver 580 or newer) is needed"));
  old.version = 13010;
  EXPECT_EQ(why_unusable(old), "");
  const std::int32_t developer[] = {90, 0};
  EXPECT_THAT(why_unusable(CudaDeviceInfo{"Tesla V100", 70, 0}, developer, 0),
              HasSubstr("Tesla V100 has compute capability 7.0, and 7.5 or newer is needed"));
  EXPECT_THAT(why_unusable(CudaDeviceInfo{"A100", 80, 0}, developer, 0),
              HasSubstr("kernels for 9.0 only: build with -DSDTUNE_CUDA_ARCHITECTURES=80"));
  EXPECT_EQ(why_unusable(CudaDeviceInfo{"H200", 90, 0}, developer, 0), "");
  const std::int32_t release[] = {75, 80, 86, 90, 100, 120, 0};
  EXPECT_EQ(why_unusable(CudaDeviceInfo{"L4", 89, 0}, release, 120), "");
  EXPECT_EQ(why_unusable(CudaDeviceInfo{"newer", 130, 0}, release, 120), "");
  EXPECT_THAT(why_unusable(CudaDeviceInfo{"newer", 110, 0}, release, 120), HasSubstr("compute capability 11.0"));
}

TEST(DescribeDevice, NamesTheCpuItsThreadsAndItsBestInstructions) {
  EXPECT_THAT(describe_device(torch::kCPU), testing::MatchesRegex("cpu \\(.+, [0-9]+ threads, .+\\)"));
  EXPECT_TRUE(fast_dtype(torch::kCPU) == torch::kFloat32 || fast_dtype(torch::kCPU) == torch::kBFloat16);
}

}  // namespace
}  // namespace sdtune::model
