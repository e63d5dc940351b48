#include "train/identity/likeness.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sdtune::train::classifier {
namespace {

TEST(IdentityScores, AreaCountsWonPairs) {
  const torch::Tensor same = torch::tensor({0.9, 0.5, 0.2}), different = torch::tensor({0.1, 0.5});
  // Wins: 0.9 beats both, 0.5 beats one and ties one, 0.2 beats one: (2 + 1.5 + 1) / 6.
  EXPECT_DOUBLE_EQ(area_under_curve(same, different), 4.5 / 6.0);
  EXPECT_DOUBLE_EQ(area_under_curve(different, same), 1.5 / 6.0);
  EXPECT_DOUBLE_EQ(area_under_curve(torch::ones({4}), torch::ones({9})), 0.5);
}

TEST(IdentityScores, AtMostTheGivenShareOfImpostorsPasses) {
  const torch::Tensor impostors = torch::arange(1000) / 1000.0;
  for (const double share : {0.0, 0.01, 0.25}) {
    const double threshold = threshold_at(impostors, share);
    EXPECT_DOUBLE_EQ(share_accepted(impostors, threshold), share);
    // No lower threshold would do: the next impostor would pass.
    const double next = impostors[static_cast<std::int64_t>(999 - 1000 * share)].item<double>();
    EXPECT_LE(threshold, std::nextafter(next, 2.0));
  }
  EXPECT_EQ(share_accepted(torch::ones({50}), threshold_at(torch::ones({50}), 0.5)), 0.0);  // ties never pass together
  EXPECT_EQ(share_accepted(impostors, threshold_at(impostors, 1.0)), 1.0);
}

TEST(IdentityScores, MeanHasLengthOneAndPointsBetween) {
  const torch::Tensor mean = mean_embedding(torch::eye(3).narrow(0, 0, 2));
  EXPECT_NEAR(mean.norm().item<double>(), 1.0, 1e-6);
  EXPECT_NEAR(mean[0].item<double>(), std::sqrt(0.5), 1e-6);
  EXPECT_EQ(mean[2].item<double>(), 0.0);
}

}  // namespace
}  // namespace sdtune::train::classifier
