#include "train/identity/identity_curve.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

IdentityResult result_at(std::int64_t step, double identity, double prompt_fidelity = 1.0, double leak = 0.0) {
  return {step, {identity, 0.5, prompt_fidelity, leak}};
}

TEST(IdentityCurve, TheBestStepHasTheHighestSumAndIsTheEarliestOfEquals) {
  IdentityCurve curve("exam");
  EXPECT_FALSE(curve.best());
  curve.add(result_at(0, 5.0));  // the base does not compete
  EXPECT_FALSE(curve.best());
  curve.add(result_at(30, 0.75, 0.75));
  curve.add(result_at(10, 0.5, 1.0));
  EXPECT_EQ(curve.best(), 10);
  EXPECT_FALSE(curve.is_better(result_at(40, 1.0, 0.625, 0.125)));  // as good
  EXPECT_TRUE(curve.is_better(result_at(40, 1.0, 0.625)));
  curve.add(result_at(40, 1.0, 0.625));
  EXPECT_EQ(curve.best(), 40);
}

TEST(IdentityCurve, AStepThatIsDoneAgainIsComparedWithThoseBeforeItAlone) {
  IdentityCurve curve("exam");
  for (const IdentityResult& result : {result_at(0, 0.9), result_at(10, 0.5), result_at(20, 0.4), result_at(30, 0.6)}) {
    curve.add(result);
  }
  EXPECT_FALSE(curve.best(0));
  EXPECT_EQ(curve.best(10), 10);
  EXPECT_EQ(curve.best(20), 10);
  EXPECT_EQ(curve.best(30), 30);
  EXPECT_EQ(curve.at(20).scores.identity, 0.4);
}

TEST(IdentityCurve, ACopyOfThePhotosIsNoMoreThanAnotherPhoto) {
  IdentityCurve curve("exam");
  curve.add(result_at(10, 1.0));
  EXPECT_FALSE(curve.is_better(result_at(20, 1.4)));
}

TEST(IdentityCurve, APlateauIsSoManyEvaluationsInARowWithoutABetterOne) {
  IdentityCurve curve("exam");
  curve.add(result_at(0, 0.0));
  EXPECT_FALSE(curve.is_on_plateau(0, 1));
  curve.add(result_at(10, 0.5));
  EXPECT_FALSE(curve.is_on_plateau(10, 1));
  curve.add(result_at(20, 0.4));
  EXPECT_TRUE(curve.is_on_plateau(20, 1));
  EXPECT_FALSE(curve.is_on_plateau(20, 2));
  curve.add(result_at(30, 0.6));
  EXPECT_FALSE(curve.is_on_plateau(30, 1));
  curve.add(result_at(40, 0.1));
  curve.add(result_at(50, 0.1));
  EXPECT_TRUE(curve.is_on_plateau(50, 2));
  // A run that resumes at step 20 has read the later evaluations, but does not count them yet.
  EXPECT_FALSE(curve.is_on_plateau(20, 2));
}

TEST(IdentityCurve, GoesOnWithItsOwnLines) {
  IdentityCurve first("exam"), other("another exam");
  std::string lines;
  for (const IdentityResult& result : {result_at(0, 0.1), result_at(10, 0.7), result_at(20, 0.6)}) {
    first.add(result);
    lines += first.line_of(result).dump() + "\n";
  }
  lines += other.line_of(result_at(30, 0.9)).dump() + "\n" + "no line of ours\n{\"exam\": \"exam\", \"step\": 40}\n";
  lines += first.line_of(result_at(50, 0.9)).dump();  // cut short before its newline
  IdentityCurve again("exam");
  again.read(lines);
  ASSERT_EQ(again.results().size(), 3u);
  EXPECT_EQ(again.best(), 10);
  EXPECT_EQ(again.results()[1].scores.total(), first.results()[1].scores.total());
  EXPECT_TRUE(again.has(20));
  EXPECT_FALSE(again.has(30));
}

}  // namespace
}  // namespace sdtune::train
