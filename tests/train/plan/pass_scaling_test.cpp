#include "train/plan/pass_scaling.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

// What a network costs whose every part is known.
PassCost known_cost(const PassShape& shape, double flops_a_cell) {
  const auto samples = shape.batch, cells = shape.cells();
  PassCost cost;
  cost.pieces.push_back({"forward", 1000 + 70 * samples + 8 * samples * cells, 500 + 6 * samples * cells});
  cost.pieces.push_back({"backward", 2000 + 9 * samples * cells, 0});
  cost.flops = 3e6 + static_cast<double>(samples) * (5e5 + flops_a_cell * static_cast<double>(cells));
  cost.attention_flops = 2.0 * static_cast<double>(samples * cells * cells);
  cost.text_flops = 7e5 * static_cast<double>(samples);
  return cost;
}

void expect_equal(const PassCost& found, const PassCost& expected) {
  ASSERT_EQ(found.pieces.size(), expected.pieces.size());
  for (std::size_t i = 0; i < found.pieces.size(); ++i) {
    EXPECT_EQ(found.pieces[i].name, expected.pieces[i].name);
    EXPECT_NEAR(found.pieces[i].peak_bytes, expected.pieces[i].peak_bytes, 1);
    EXPECT_NEAR(found.pieces[i].end_bytes, expected.pieces[i].end_bytes, 1);
  }
  EXPECT_NEAR(found.flops / expected.flops, 1, 1e-9);
  EXPECT_NEAR(found.attention_flops / expected.attention_flops, 1, 1e-9);
  EXPECT_NEAR(found.text_flops / expected.text_flops, 1, 1e-9);
}

TEST(ScaledPass, FindsLargeSizesFromSmallOnes) {
  std::vector<PassShape> traced;
  ScaledPass pass(8, QuickPass::kWatched, [&](const PassShape& shape) {
    traced.push_back(shape);
    return known_cost(shape, 1e9);
  });
  const PassShape large{6, 64, 96}, wide{2, 32, 128};
  expect_equal(pass.at(large), known_cost(large, 1e9));
  expect_equal(pass.at(wide), known_cost(wide, 1e9));
  EXPECT_EQ(traced.size(), 3u);  // once for both
  for (const PassShape& shape : traced) {
    EXPECT_LE(shape.batch * shape.cells(), 1024);
    EXPECT_EQ(shape.height % 8, 0);
  }
}

TEST(ScaledPass, RunsWhatIsQuickAsItIs) {
  PassShape last;
  ScaledPass pass(4, QuickPass::kWatched, [&](const PassShape& shape) {
    last = shape;
    return known_cost(shape, 1e4);
  });
  const PassShape asked{8, 16, 24};
  expect_equal(pass.at(asked), known_cost(asked, 1e4));
  EXPECT_EQ(last.batch, 8);
  EXPECT_GE(pass.at(asked).resident_bytes, 0);
  EXPECT_EQ(last.width, 24);
}

TEST(ScaledPass, ComputesNothingForAnotherDevice) {
  int passes = 0;
  ScaledPass pass(4, QuickPass::kSizes, [&](const PassShape& shape) {
    ++passes;
    return known_cost(shape, 1e4);
  });
  const PassShape asked{8, 16, 24};
  expect_equal(pass.at(asked), known_cost(asked, 1e4));
  EXPECT_EQ(pass.at(asked).resident_bytes, 0);
  EXPECT_EQ(passes, 3);  // a trial, and one for each question: the process is not watched
}

}  // namespace
}  // namespace sdtune::train
