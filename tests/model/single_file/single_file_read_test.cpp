#include "model/single_file/single_file_read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// What is said of a tensor with these numbers; empty: nothing.
std::string overflow_of(const std::vector<double>& numbers, torch::Dtype stored, torch::Dtype written) {
  const torch::Tensor tensor = torch::tensor(numbers, torch::kFloat64).to(stored);
  try {
    refuse_overflow({TensorSource::of_tensors("unet", {{"none", torch::empty({0})}, {"w", tensor}})}, written);
  } catch (const WeightError& error) {
    return error.what();
  }
  return "";
}

TEST(RefuseOverflow, NamesTheTensorThatWouldBecomeInfinite) {
  EXPECT_THAT(overflow_of({1, 65520}, torch::kFloat32, torch::kFloat16),
              HasSubstr("unet: holds numbers that are too large for float16 (w)"));
  EXPECT_EQ(overflow_of({1, 65519}, torch::kFloat32, torch::kFloat16), "");  // which is rounded down
  EXPECT_NE(overflow_of({-70000, 1}, torch::kBFloat16, torch::kFloat16), "");
  EXPECT_NE(overflow_of({1e39}, torch::kFloat64, torch::kFloat32), "");
  EXPECT_EQ(overflow_of({1e38}, torch::kFloat64, torch::kFloat32), "");
  EXPECT_EQ(overflow_of({1e38}, torch::kFloat32, torch::kBFloat16), "");
}

TEST(RefuseOverflow, LeavesAloneWhatIsNotFiniteAlready) {
  EXPECT_EQ(overflow_of({kInfinite, kNan, 1}, torch::kFloat32, torch::kFloat16), "");
  EXPECT_EQ(overflow_of({kInfinite}, torch::kFloat16, torch::kFloat16), "");
  EXPECT_NE(overflow_of({kNan, 70000}, torch::kFloat32, torch::kFloat16), "");
  EXPECT_NE(overflow_of({-kInfinite, 70000}, torch::kFloat32, torch::kFloat16), "");
}

}  // namespace
}  // namespace sdtune::model
