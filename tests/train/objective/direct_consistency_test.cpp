#include "train/objective/direct_consistency.h"

#include <ATen/ops/log_sigmoid.h>
#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

constexpr double kBeta = 7;

TEST(DirectConsistency, HasTheGradientOfThePapersLoss) {
  const torch::Tensor base = torch::tensor({0.3f, 0.3f, 0.3f, 0.9f});
  torch::Tensor ours = torch::tensor({0.1f, 0.3f, 0.8f, 0.2f}, torch::requires_grad());
  torch::Tensor paper = ours.detach().clone().set_requires_grad(true);
  (ours * consistency_weights(ours, base, kBeta)).sum().backward();
  (2 / kBeta * -at::log_sigmoid(-kBeta * (paper - base))).sum().backward();
  EXPECT_TRUE(ours.grad().allclose(paper.grad(), 1e-6, 1e-7)) << ours.grad() << paper.grad();
  const torch::Tensor other_way = consistency_weights(base, ours, kBeta);  // a mutant
  EXPECT_FALSE(other_way.allclose(paper.grad(), 0.1, 0.1));
}

TEST(DirectConsistency, LeavesALossThatIsTheBasesAsItIs) {
  const torch::Tensor losses = torch::tensor({0.1f, 0.7f});
  EXPECT_TRUE(torch::equal(consistency_weights(losses, losses, 1000), torch::ones({2})));
}

TEST(DirectConsistency, RefusesLossesOfOtherSamples) {
  EXPECT_THROW(consistency_weights(torch::zeros({2}), torch::zeros({3}), kBeta), c10::Error);
}

}  // namespace
}  // namespace sdtune::train
