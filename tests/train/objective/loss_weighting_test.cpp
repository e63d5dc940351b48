#include "train/objective/loss_weighting.h"

#include <gtest/gtest.h>

#include "train/objective/prior_preservation.h"

namespace sdtune::train {
namespace {

using model::PredictionType;

TEST(MinSnr, WeighsEachTypeByItsFormula) {
  const torch::Tensor snr = torch::tensor({0.1f, 5.0f, 20.0f});
  EXPECT_TRUE(min_snr_weights(PredictionType::kEpsilon, snr, 5.0).allclose(torch::tensor({1.0f, 1.0f, 0.25f})));
  EXPECT_TRUE(min_snr_weights(PredictionType::kVPrediction, snr, 5.0)
                  .allclose(torch::tensor({0.1f / 1.1f, 5.0f / 6.0f, 5.0f / 21.0f})));
  EXPECT_TRUE(min_snr_weights(PredictionType::kSample, snr, 5.0).allclose(torch::tensor({0.1f, 5.0f, 5.0f})));
}

TEST(MinSnr, IsFiniteAtZeroTerminalSnr) {
  const torch::Tensor zero = torch::zeros({1});
  EXPECT_EQ(min_snr_weights(PredictionType::kEpsilon, zero, 5.0).item<float>(), 1.0f);
  EXPECT_EQ(min_snr_weights(PredictionType::kVPrediction, zero, 5.0).item<float>(), 0.0f);
}

TEST(PriorPreservation, IsTheMeanOfEachHalf) {
  const torch::Tensor losses = torch::tensor({1.0f, 3.0f, 10.0f, 20.0f});
  const LossShare share = share_of_loss(losses, 2, 2);
  EXPECT_EQ(share.instance.item<float>(), 2.0f);
  EXPECT_EQ(share.prior.item<float>(), 15.0f);
  EXPECT_EQ(share.total(0.5).item<float>(), 9.5f);
}

TEST(PriorPreservation, SharesOfMicroBatchesAddUp) {
  const torch::Tensor losses = torch::tensor({1.0f, 3.0f, 10.0f, 20.0f});
  const LossShare first = share_of_loss(losses.index_select(0, torch::tensor({0, 2})), 1, 2);
  const LossShare second = share_of_loss(losses.index_select(0, torch::tensor({1, 3})), 1, 2);
  EXPECT_EQ((first.total(1.0) + second.total(1.0)).item<float>(), 17.0f);
}

}  // namespace
}  // namespace sdtune::train
