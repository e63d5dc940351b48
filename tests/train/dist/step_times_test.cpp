#include "train/dist/step_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/gloo_ranks.h"

namespace sdtune::train {
namespace {

TEST(BalanceOf, TellsASlowRankFromASlowNetwork) {
  // Computing of four ranks, then waiting: the third is slow, and waits for the network alone.
  const std::vector<double> times = {1, 1, 1.6, 1, 0.7, 0.7, 0.1, 0.7};
  const std::optional<RankBalance> balance = balance_of(times);
  ASSERT_TRUE(balance);
  EXPECT_EQ(balance->slowest_rank, 2);
  EXPECT_NEAR(balance->straggler_ratio, 1.6 / 1.15, 1e-12);
  EXPECT_NEAR(balance->communication_share, 0.1 / 1.7, 1e-12);
  // The mutant: halves swapped, so that waiting passes for computing.
  const std::vector<double> swapped = {0.7, 0.7, 0.1, 0.7, 1, 1, 1.6, 1};
  EXPECT_NE(balance_of(swapped)->slowest_rank, 2);
}

TEST(BalanceOf, IsUnsetForOneRankAndBeforeEveryRankHasTimes) {
  EXPECT_FALSE(balance_of(std::vector<double>{}));
  EXPECT_FALSE(balance_of(std::vector<double>{1, 0}));
  EXPECT_FALSE(balance_of(std::vector<double>{1, 0, 0.5, 0}));
}

// A rank that sleeps before it joins the sum counts as computing, and those that wait for it do not.
TEST(StepTimes, NameTheRankThatOthersWaitFor) {
  std::mutex lock;
  std::vector<RankBalance> balances;
  const std::vector<std::string> errors = test::run_ranks(3, {}, [&](ProcessGroup& group) {
    StepTimes times(group, torch::kCPU);
    torch::Tensor sums;
    for (int step = 0; step < 2; ++step) {
      times.begin_step();
      if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      sums = times.own();
      group.all_reduce_sum(sums);
      times.end_step();
      if (step == 0 && sums.ne(0).any().item<bool>()) throw std::runtime_error("times before the first step");
    }
    const torch::Tensor wide = sums.to(torch::kFloat64);
    const std::optional<RankBalance> balance = balance_of({wide.const_data_ptr<double>(), 6});
    {
      const std::scoped_lock guard(lock);
      balances.push_back(balance.value());
    }
    group.barrier();
  });
  EXPECT_THAT(errors, testing::Each(""));
  ASSERT_EQ(balances.size(), 3U);
  for (const RankBalance& balance : balances) {
    EXPECT_EQ(balance.slowest_rank, 1);
    EXPECT_GT(balance.straggler_ratio, 1.5);
    EXPECT_LE(balance.straggler_ratio, 3);
    EXPECT_EQ(balance.communication_share, balances.front().communication_share);
  }
}

}  // namespace
}  // namespace sdtune::train
