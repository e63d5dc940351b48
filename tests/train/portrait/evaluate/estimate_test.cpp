#include "train/portrait/evaluate/estimate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sdtune::train::evaluate {
namespace {

TEST(Estimate, ShareHasWilsonsInterval) {
  const Estimate share = share_of(torch::cat({torch::ones({8}), torch::zeros({2})}).to(torch::kBool));
  EXPECT_DOUBLE_EQ(share.value, 0.8);
  EXPECT_NEAR(share.low, 0.4902, 1e-4);  // Wilson 1927 for 8 of 10
  EXPECT_NEAR(share.high, 0.9433, 1e-4);
  EXPECT_EQ(share.count, 10);
}

TEST(Estimate, ShareOfAllOrNoneIsStillUnsure) {
  const Estimate all = share_of(torch::ones({20}, torch::kBool)), none = share_of(torch::zeros({20}, torch::kBool));
  EXPECT_DOUBLE_EQ(all.value, 1.0);
  EXPECT_DOUBLE_EQ(all.high, 1.0);
  EXPECT_NEAR(all.low, 0.8389, 1e-4);
  EXPECT_DOUBLE_EQ(none.low, 0.0);
  EXPECT_NEAR(none.high, 1 - 0.8389, 1e-4);
}

TEST(Estimate, MeanNarrowsWithMoreImages) {
  const Estimate mean = mean_of(torch::tensor({1.0, 2.0, 3.0}));
  EXPECT_DOUBLE_EQ(mean.value, 2.0);
  EXPECT_NEAR(mean.high - mean.value, 1.959964 / std::sqrt(3.0), 1e-6);
  const Estimate many = mean_of(torch::tensor({1.0, 2.0, 3.0}).repeat({100}));
  EXPECT_LT(many.high - many.low, 0.12 * (mean.high - mean.low));
  EXPECT_EQ(mean_of(torch::ones({1})).low, 1.0);
}

TEST(Estimate, JackknifeOfAMeanIsTheMeansError) {
  torch::manual_seed(4);
  const torch::Tensor values = torch::randn({200}, torch::kFloat64);
  const Estimate by_rows =
      jackknife(200, [&](const torch::Tensor& rows) { return values.index_select(0, rows).mean().item<double>(); });
  const Estimate direct = mean_of(values);
  EXPECT_NEAR(by_rows.value, direct.value, 1e-12);
  EXPECT_NEAR((by_rows.high - by_rows.low) / (direct.high - direct.low), 1.0, 0.5);  // ten groups know it roughly
  const Estimate constant = jackknife(50, [](const torch::Tensor&) { return 3.0; });
  EXPECT_NEAR(constant.high - constant.low, 0.0, 1e-12);
}

}  // namespace
}  // namespace sdtune::train::evaluate
