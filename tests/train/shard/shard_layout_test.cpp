#include "train/shard/shard_layout.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/base/error.h"

namespace sdtune::train {
namespace {

// A UNet's sizes: few large tensors, many small ones. Adafactor's states are no fixed share of the gradients.
std::vector<ShardCost> costs_of_a_model() {
  std::vector<ShardCost> costs;
  for (std::int64_t level = 1; level <= 4; ++level) {
    for (std::int64_t block = 0; block < 12; ++block) {
      const std::int64_t channels = 320 * std::min<std::int64_t>(level, 4);
      const std::string name = "block." + std::to_string(level) + "." + std::to_string(block);
      costs.push_back({name + ".conv.weight", 4 * channels * channels * 9, 4 * channels * channels * 6});
      costs.push_back({name + ".linear.weight", 4 * channels * channels, 8 * channels});
      costs.push_back({name + ".bias", 4 * channels, 4 * channels});
    }
  }
  return costs;
}

struct Shares {
  double gradient = 0, states = 0;
};

// The largest share of one rank, times the ranks.
Shares largest(const std::vector<ShardCost>& costs, const std::vector<std::int64_t>& owners, std::int64_t ranks) {
  Shares all, most;
  for (const ShardCost& cost : costs) {
    all.gradient += static_cast<double>(cost.gradient);
    all.states += static_cast<double>(cost.states);
  }
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    Shares own;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (owners[i] != rank) continue;
      own.gradient += static_cast<double>(costs[i].gradient);
      own.states += static_cast<double>(costs[i].states);
    }
    most.gradient = std::max(most.gradient, own.gradient / all.gradient * static_cast<double>(ranks));
    most.states = std::max(most.states, own.states / all.states * static_cast<double>(ranks));
  }
  return most;
}

TEST(ShardLayout, GivesEachRankItsShareOfGradientsAndOfStates) {
  const std::vector<ShardCost> costs = costs_of_a_model();
  for (const std::int64_t ranks : {2, 3, 4, 8}) {
    const Shares most = largest(costs, assign_owners(costs, ranks), ranks);
    EXPECT_LE(most.gradient, 1.05) << ranks << " ranks";
    EXPECT_LE(most.states, 1.05) << ranks << " ranks";
  }
  // The mutant: as many parameters each.
  std::vector<std::int64_t> by_count;
  for (std::size_t i = 0; i < costs.size(); ++i) by_count.push_back(static_cast<std::int64_t>(4 * i / costs.size()));
  EXPECT_GT(largest(costs, by_count, 4).gradient, 1.05);
}

TEST(ShardLayout, CountsWhatTheOwnerOfAParameterKeeps) {
  const std::vector<ModuleParameter> trained = {{"unet.conv.weight", torch::zeros({8, 4, 3, 3}, torch::kBFloat16)}};
  OptimOptions options;  // AdamW: two states
  const auto floats = [&](bool have_masters) {
    const std::vector<ShardCost> costs = shard_costs(options, trained, have_masters);
    EXPECT_EQ(costs.size(), 1u);
    EXPECT_EQ(costs[0].name, "unet.conv.weight");
    EXPECT_EQ(costs[0].gradient, 4 * 8 * 4 * 9);  // summed in float32, whatever the weight's type
    return static_cast<double>(costs[0].states) / (4 * 8 * 4 * 9);
  };
  EXPECT_NEAR(floats(false), 2, 0.02);
  EXPECT_NEAR(floats(true), 3, 0.02);
  options.use_ema = true;
  EXPECT_NEAR(floats(true), 4, 0.02);
}

TEST(ShardLayout, DependsOnNamesAndSizesAlone) {
  std::vector<ShardCost> costs = costs_of_a_model();
  const std::vector<std::int64_t> owners = assign_owners(costs, 3);
  std::reverse(costs.begin(), costs.end());
  std::vector<std::int64_t> reversed = assign_owners(costs, 3);
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_EQ(reversed, owners);
}

TEST(ShardLayout, RefusesMoreRanksThanParameters) {
  EXPECT_THROW(assign_owners({{"a", 4, 8}, {"b", 4, 8}}, 3), ConfigError);
  EXPECT_EQ(assign_owners({{"a", 4, 8}, {"b", 4, 8}}, 2), (std::vector<std::int64_t>{0, 1}));
}

}  // namespace
}  // namespace sdtune::train
