#include "train/portrait/evaluate/estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace sdtune::train::evaluate {
namespace {

TEST(Estimate, ShareHasWilsonsInterval) {
  const Estimate share = share_of(torch::cat({torch::ones({8}), torch::zeros({2})}).to(torch::kBool));
  EXPECT_DOUBLE_EQ(share.value, 0.8);
  EXPECT_NEAR(share.low, 0.4902, 1e-4);  // Wilson 1927 for 8 of 10
  EXPECT_NEAR(share.high, 0.9433, 1e-4);
  EXPECT_EQ(share.count, 10);
}

TEST(Estimate, AShareOfFewerIndependentAnswersHasTheirInterval) {
  const torch::Tensor hits = torch::cat({torch::ones({8}), torch::zeros({2})}).to(torch::kBool);
  const Estimate twice = share_of(torch::cat({hits, hits}), 10.0), once = share_of(hits);
  EXPECT_DOUBLE_EQ(twice.value, once.value);
  EXPECT_DOUBLE_EQ(twice.low, once.low);
  EXPECT_DOUBLE_EQ(twice.high, once.high);
  EXPECT_EQ(twice.count, 20);
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
  EXPECT_NEAR(mean.high - mean.value, 4.303 / std::sqrt(3.0), 1e-6);
  const Estimate many = mean_of(torch::tensor({1.0, 2.0, 3.0}).repeat({100}));
  EXPECT_LT(many.high - many.low, 0.12 * (mean.high - mean.low));
  EXPECT_EQ(mean_of(torch::ones({1})).low, 1.0);
}

// Half of the interval of the mean of `count` numbers, in standard errors.
double deviations_of_mean(std::int64_t count) {
  const torch::Tensor values = torch::arange(count).to(torch::kFloat64);
  const Estimate mean = mean_of(values);
  return (mean.high - mean.value) / (values.std().item<double>() / std::sqrt(static_cast<double>(count)));
}

TEST(Estimate, AMeanOfFewHasStudentsInterval) {
  constexpr double kPrinted = 5e-4;  // of tables with three decimals
  EXPECT_NEAR(deviations_of_mean(2), 12.706, kPrinted);
  EXPECT_NEAR(deviations_of_mean(10), 2.262, kPrinted);
  EXPECT_NEAR(deviations_of_mean(14), 2.160, kPrinted);
  EXPECT_NEAR(deviations_of_mean(31), 2.042, kPrinted);
  EXPECT_NEAR(deviations_of_mean(32), 2.0395, kPrinted);  // the first behind the table
  EXPECT_NEAR(deviations_of_mean(101), 1.984, kPrinted);
  EXPECT_NEAR(deviations_of_mean(100'000), 1.960, kPrinted);
  // n degrees of freedom in place of n - 1, and a normal distribution's quantile, are not taken for it.
  EXPECT_GT(std::abs(deviations_of_mean(14) - 2.145), 10 * kPrinted);
  EXPECT_GT(std::abs(deviations_of_mean(101) - 1.960), 10 * kPrinted);
}

TEST(Estimate, AJackknifeHasStudentsIntervalOfItsGroups) {
  for (const std::int64_t count : {2, 10, 14}) {
    const torch::Tensor values = torch::arange(count).to(torch::kFloat64);
    const std::int64_t groups = std::min<std::int64_t>(count, 10);
    std::vector<double> without;
    for (std::int64_t group = 0; group < groups; ++group) {
      const torch::Tensor kept = torch::arange(count).remainder(groups).ne(group);
      without.push_back(values.masked_select(kept).mean().item<double>());
    }
    const torch::Tensor left = torch::tensor(without, torch::kFloat64);
    const double error = std::sqrt((left - left.mean()).square().sum().item<double>() *
                                   static_cast<double>(groups - 1) / static_cast<double>(groups));
    const Estimate found =
        jackknife(count, [&](const torch::Tensor& rows) { return values.index_select(0, rows).mean().item<double>(); });
    EXPECT_NEAR((found.high - found.value) / error, groups == 2 ? 12.706 : 2.262, 5e-4) << count;
  }
}

TEST(Estimate, JackknifeOfAMeanIsTheMeansError) {
  torch::manual_seed(4);
  const torch::Tensor values = torch::randn({200}, torch::kFloat64);
  const Estimate by_rows =
      jackknife(200, [&](const torch::Tensor& rows) { return values.index_select(0, rows).mean().item<double>(); });
  const Estimate direct = mean_of(values);
  EXPECT_NEAR(by_rows.value, direct.value, 1e-12);
  const double quantiles = 2.262 / 1.972;  // of 9 and of 199 degrees of freedom; ten groups know the error roughly
  EXPECT_NEAR((by_rows.high - by_rows.low) / (direct.high - direct.low) / quantiles, 1.0, 0.5);
  const Estimate constant = jackknife(50, [](const torch::Tensor&) { return 3.0; });
  EXPECT_NEAR(constant.high - constant.low, 0.0, 1e-12);
}

}  // namespace
}  // namespace sdtune::train::evaluate
