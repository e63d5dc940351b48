#include "train/run/run_budget.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

class Budget : public testing::Test {
 protected:
  RunBudget budget(std::optional<double> hours, std::optional<double> cost, double price, double earlier = 0) {
    RentalOptions options;
    options.max_hours = hours;
    options.max_cost = cost;
    return {options, price, earlier, [this] { return now_; }};
  }
  double now_ = 1e6;  // s
};

TEST_F(Budget, IsNeverSpentWithoutOne) {
  const RunBudget unlimited = budget({}, {}, 2);
  now_ += 1e9;
  EXPECT_FALSE(unlimited.is_spent());
}

TEST_F(Budget, CountsHoursOverAttempts) {
  const RunBudget fresh = budget(2, {}, 0);
  const RunBudget resumed = budget(2, {}, 0, 3600);
  now_ += 3599;
  EXPECT_FALSE(fresh.is_spent());
  EXPECT_FALSE(resumed.is_spent());
  now_ += 1;
  EXPECT_FALSE(fresh.is_spent());
  EXPECT_TRUE(resumed.is_spent());
  EXPECT_EQ(resumed.cause(), "max_hours is spent: 2 of 2 hours");
}

TEST_F(Budget, MoneyIsHoursTimesThePrice) {
  const RunBudget paid = budget({}, 3, 2);
  now_ += 1.5 * 3600 - 1;
  EXPECT_FALSE(paid.is_spent());
  now_ += 1;
  EXPECT_TRUE(paid.is_spent());
  EXPECT_EQ(paid.cause(), "max_cost is spent: 3 of 3 at 2 an hour");
}

TEST_F(Budget, TheSmallerOneCounts) {
  const RunBudget by_hours = budget(1, 3, 2);
  const RunBudget by_cost = budget(2, 3, 2);
  now_ += 3600;
  EXPECT_TRUE(by_hours.is_spent());
  EXPECT_EQ(by_hours.cause().substr(0, 9), "max_hours");
  EXPECT_FALSE(by_cost.is_spent());
  EXPECT_EQ(by_cost.cause().substr(0, 8), "max_cost");
}

TEST_F(Budget, LeavesTimeForCheckpointAndModel) {
  RunBudget saves = budget(1, {}, 0);
  saves.on_checkpoint({1, {}, 100});
  saves.on_checkpoint({2, {}, 30});
  now_ += 3600 - 201;
  EXPECT_FALSE(saves.is_spent());
  now_ += 1;
  EXPECT_TRUE(saves.is_spent());
}

}  // namespace
}  // namespace sdtune::train
