#include "model/core/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"

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
  if (has_usable_gpu()) GTEST_SKIP() << "this machine has a usable GPU";
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

TEST(DescribeDevice, NamesTheCpuItsThreadsAndItsBestInstructions) {
  EXPECT_THAT(describe_device(torch::kCPU), testing::MatchesRegex("cpu \\(.+, [0-9]+ threads, .+\\)"));
  EXPECT_EQ(default_dtype(torch::kCPU), torch::kFloat32);
}

}  // namespace
}  // namespace sdtune::model
