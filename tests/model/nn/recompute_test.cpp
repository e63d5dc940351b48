#include "model/nn/recompute.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "model/nn/resnet_block.h"

namespace sdtune::model {
namespace {

ResnetBlock2D make_block() {
  torch::manual_seed(0);
  return ResnetBlock2D(ResnetOptions{.in_channels = 8, .out_channels = 16, .time_channels = 12, .norm_num_groups = 4});
}

std::vector<torch::Tensor> gradients(ResnetBlock2D block, bool recomputed, bool input_needs_gradient) {
  torch::manual_seed(1);
  const torch::Tensor x = torch::randn({2, 8, 6, 6}).set_requires_grad(input_needs_gradient);
  const torch::Tensor time = torch::randn({2, 12}).set_requires_grad(input_needs_gradient);
  block->zero_grad();
  RecomputedFunction run = [block](const std::vector<torch::Tensor>& in) mutable { return block(in[0], in[1]); };
  const torch::Tensor y = recomputed ? recompute(run, {x, time}) : run({x, time});
  y.square().sum().backward();
  std::vector<torch::Tensor> all;
  for (const torch::Tensor& parameter : block->parameters()) all.push_back(parameter.grad().clone());
  if (input_needs_gradient) all.insert(all.end(), {x.grad(), time.grad()});
  return all;
}

TEST(Recompute, GivesTheSameGradients) {
  ResnetBlock2D block = make_block();
  for (const bool input_needs_gradient : {true, false}) {
    const auto plain = gradients(block, false, input_needs_gradient);
    const auto again = gradients(block, true, input_needs_gradient);
    ASSERT_EQ(plain.size(), again.size());
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(torch::equal(plain[i], again[i])) << "gradient " << i;
  }
}

TEST(Recompute, RunsTheFunctionASecondTimeInBackwardOnly) {
  int runs = 0;
  const torch::Tensor x = torch::ones({3}).set_requires_grad(true);
  const torch::Tensor y = recompute(
      [&runs](const std::vector<torch::Tensor>& in) {
        ++runs;
        return in[0].square();
      },
      {x});
  EXPECT_EQ(runs, 1);
  y.sum().backward();
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(torch::equal(x.grad(), 2 * x.detach()));
}

TEST(Recompute, IsPlainWithoutGradients) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor y =
      recompute([](const std::vector<torch::Tensor>& in) { return in[0] + 1; }, {torch::zeros({1})});
  EXPECT_FALSE(y.requires_grad());
}

// SDXL's first block under LoRA: no branch in it, none before it.
TEST(Recompute, HoldsWhereNothingInsideIsTrained) {
  const torch::Tensor trained = torch::full({2}, 3.0).set_requires_grad(true);
  const torch::Tensor fixed =
      recompute([](const std::vector<torch::Tensor>& in) { return in[0].square(); }, {torch::full({2}, 2.0)});
  (fixed * trained).sum().backward();
  EXPECT_TRUE(torch::equal(trained.grad(), torch::full({2}, 4.0)));
}

TEST(Recompute, MayBeNested) {
  const torch::Tensor x = torch::full({2}, 3.0).set_requires_grad(true);
  const RecomputedFunction inner = [](const std::vector<torch::Tensor>& in) { return in[0].square(); };
  const torch::Tensor y =
      recompute([&](const std::vector<torch::Tensor>& in) { return recompute(inner, {in[0]}).square(); }, {x});
  y.sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), 4 * x.detach().pow(3)));
}

}  // namespace
}  // namespace sdtune::model
