#include "train/profile/operator_totals.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace sdtune::train {
namespace {

const OperatorTotal* find(const std::vector<OperatorTotal>& operators, const std::string& name) {
  const auto found =
      std::find_if(operators.begin(), operators.end(), [&](const auto& one) { return one.name == name; });
  return found == operators.end() ? nullptr : &*found;
}

TEST(OperatorTotals, CountsCallsAndOperations) {
  const torch::Tensor left = torch::rand({8, 16}), right = torch::rand({16, 4});
  const OperatorTotals totals;
  for (int i = 0; i < 3; ++i) left.mm(right);
  const std::vector<OperatorTotal> operators = totals.operators();
  const OperatorTotal* product = find(operators, "aten::mm");
  ASSERT_NE(product, nullptr);
  EXPECT_EQ(product->calls, 3);
  EXPECT_EQ(product->flops, 3 * 2 * 8 * 16 * 4);
  EXPECT_GT(product->seconds, 0);
}

TEST(OperatorTotals, AnOperatorsTimeIsWithoutThatOfTheOnesItCalls) {
  const torch::Tensor left = torch::rand({512, 512}), right = torch::rand({512, 512});
  const OperatorTotals totals;
  {
    RECORD_USER_SCOPE("all");
    for (int i = 0; i < 5; ++i) torch::matmul(left, right);  // calls mm
  }
  const std::vector<OperatorTotal> operators = totals.operators();
  double sum = 0;
  for (const OperatorTotal& one : operators) sum += one.seconds;
  ASSERT_EQ(totals.phases().size(), 1U);
  EXPECT_LE(sum, totals.phases()[0].seconds);
  EXPECT_LT(find(operators, "aten::matmul")->seconds, find(operators, "aten::mm")->seconds);
  EXPECT_EQ(operators.front().name, "aten::mm") << "the longest first";
}

TEST(OperatorTotals, PhasesKeepTheirOrderAndOtherThreadsCount) {
  const OperatorTotals totals;
  for (int i = 0; i < 2; ++i) {
    { RECORD_USER_SCOPE("forward"); }
    { RECORD_USER_SCOPE("backward"); }
  }
  std::thread([] { torch::ones({4}).add(1); }).join();
  const std::vector<PhaseTotal> phases = totals.phases();
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(phases[0].name, "forward");
  EXPECT_EQ(phases[1].name, "backward");
  EXPECT_NE(find(totals.operators(), "aten::add"), nullptr);
}

TEST(OperatorTotals, WatchesOnlyWhileItLives) {
  const torch::Tensor one = torch::ones({4});
  one.add(1);
  const OperatorTotals first;
  EXPECT_EQ(find(first.operators(), "aten::add"), nullptr);
}

}  // namespace
}  // namespace sdtune::train
