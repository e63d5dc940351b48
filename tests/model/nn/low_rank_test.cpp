#include "model/nn/low_rank.h"

#include <gtest/gtest.h>

#include "model/nn/linear.h"

namespace sdtune::model {
namespace {

LowRankBranch branch_for(const LowRankLayer& layer, int64_t rank, double scale) {
  return {.lora = "a",
          .down = torch::randn(layer.down_shape(rank)),
          .up = torch::randn(layer.up_shape(rank)),
          .scale = scale};
}

// What a branch adds is what its product adds to the weight.
void expect_product(torch::Tensor weight, LowRankLayer& layer, const std::function<torch::Tensor()>& forward) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor plain = forward();
  layer.branches = {branch_for(layer, 3, 0.7), branch_for(layer, 2, -1.5)};
  const torch::Tensor branched = forward();
  for (const LowRankBranch& branch : layer.branches) weight += branch.scale * LowRankLayer::product(branch);
  layer.branches.clear();
  const torch::Tensor merged = forward();
  EXPECT_LT((branched - merged).norm().item<double>(), 1e-5 * merged.norm().item<double>());
  EXPECT_GT((branched - plain).norm().item<double>(), 0.1 * plain.norm().item<double>());
}

TEST(LowRank, IsWhatItsProductAddsToALinearLayer) {
  Linear layer(10, 6);
  const torch::Tensor x = torch::randn({2, 5, 10});
  expect_product(layer->weight.detach(), *layer, [&] { return layer->forward(x); });
  expect_product(layer->weight.detach(), *layer, [&] { return layer->forward_without_bias(x); });
}

TEST(LowRank, IsWhatItsProductAddsToAConvolution) {
  for (const Conv2dOptions& options :
       {Conv2dOptions{4, 6, 3, 1, 1}, Conv2dOptions{4, 6, 3, 2, 1}, Conv2dOptions{4, 6, 1, 1, 0}}) {
    Conv2d layer(options);
    for (const auto format : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
      const torch::Tensor x = torch::randn({2, 4, 8, 8}).contiguous(format);
      expect_product(layer->weight.detach(), *layer, [&] { return layer->forward(x); });
    }
  }
}

TEST(LowRank, LeavesParametersAndNamesAlone) {
  Linear layer(4, 4);
  layer->branches.push_back(branch_for(*layer, 2, 1.0));
  EXPECT_EQ(layer->named_parameters().size(), 2u);
}

TEST(LowRank, GradientsOfBothMatricesAreThoseOfTheFormula) {
  Linear layer(5, 4);
  LowRankBranch branch = branch_for(*layer, 2, 0.5);
  branch.down.set_requires_grad(true);
  branch.up.set_requires_grad(true);
  layer->branches = {branch};
  const torch::Tensor x = torch::randn({3, 5}), weights = torch::randn({3, 4});
  (layer->forward(x) * weights).sum().backward();
  // d/dU = scale g^T (x D^T), d/dD = scale (g U)^T x
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(branch.up.grad().allclose(0.5 * weights.t().mm(x.mm(branch.down.t())), 1e-4, 1e-5));
  EXPECT_TRUE(branch.down.grad().allclose(0.5 * weights.mm(branch.up).t().mm(x), 1e-4, 1e-5));
}

}  // namespace
}  // namespace sdtune::model
