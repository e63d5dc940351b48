#include "train/objective/loss_weighting.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

TEST(MaskedMean, WeighsEachPlaceByItsMask) {
  const torch::Tensor errors = torch::tensor({1.0F, 2.0F, 3.0F, 4.0F}).view({1, 1, 2, 2}).expand({2, 3, 2, 2});
  const torch::Tensor mask =
      torch::stack({torch::tensor({{1.0F, 0.5F}, {0.0F, 0.05F}}), torch::ones({2, 2})}).unsqueeze(1);
  ObjectiveOptions options;
  const float of_first = (1.0F * 1 + 0.5F * 2 + 0.1F * 3 + 0.1F * 4) / 4;
  EXPECT_TRUE(masked_mean(errors, mask, options).allclose(torch::tensor({of_first, 2.5F})));
  options.normalize_masked_area_loss = true;
  EXPECT_TRUE(masked_mean(errors, mask, options).allclose(torch::tensor({of_first * 4 / 1.7F, 2.5F})));
}

TEST(MaskedMean, IsZeroWhereNothingCounts) {
  ObjectiveOptions options;
  options.unmasked_weight = 0;
  options.normalize_masked_area_loss = true;
  EXPECT_EQ(masked_mean(torch::ones({1, 4, 2, 2}), torch::zeros({1, 1, 2, 2}), options).item<float>(), 0.0F);
}

}  // namespace
}  // namespace sdtune::train
