#include "train/prove/adamw_statement.h"

#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include "tests/support/relative_error.h"

namespace sdtune::train {
namespace {

using test::relative_error;

TEST(AdamWStatement, IsWhatLibTorchsOptimizerDoes) {
  torch::manual_seed(0);
  OptimOptions options;
  options.learning_rate = 1e-2;
  torch::Tensor ours = torch::randn({40, 7}, torch::kFloat64), theirs = ours.clone();
  const torch::Tensor start = ours.clone();
  theirs.set_requires_grad(true);
  torch::optim::AdamW oracle({theirs}, torch::optim::AdamWOptions(1e-2).weight_decay(options.adam_weight_decay));
  AdamWStatement statement(options, /*in_double=*/true);
  for (int step = 0; step < 4; ++step) {
    const torch::Tensor gradient = torch::randn({40, 7}, torch::kFloat64);
    theirs.mutable_grad() = gradient;
    oracle.step();
    statement.update({ours}, {gradient});
  }
  const torch::Tensor change = ours - start, want = theirs.detach() - start;
  EXPECT_LE(relative_error(change, want), 1e-12);
  EXPECT_GT(relative_error(change * 1.001, want), 1e-12) << "a mutant must show";
}

TEST(ClipFactor, NeverMakesAGradientLarger) {
  EXPECT_EQ(clip_factor(0.5, 1), 1);
  EXPECT_NEAR(clip_factor(4, 1), 0.25, 1e-6);
}

}  // namespace
}  // namespace sdtune::train
