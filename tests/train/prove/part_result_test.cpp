#include "train/prove/part_result.h"

#include <gtest/gtest.h>

#include <limits>

#include "model/base/error.h"

namespace sdtune::train {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Check, PassesWithinItsBarsAlone) {
  EXPECT_TRUE((Check{"", 1, {}, 1.0}.passed()));
  EXPECT_FALSE((Check{"", 1.01, {}, 1.0}.passed()));
  EXPECT_TRUE((Check{"", 1, 1.0, {}}.passed()));
  EXPECT_FALSE((Check{"", 0.99, 1.0, {}}.passed()));
  EXPECT_FALSE((Check{"", 3, 0.5, 2.0}.passed()));
  EXPECT_TRUE((Check{"", 1e9}.passed())) << "a number without a bar cannot fail";
}

TEST(Check, NoBarTakesWhatIsNotANumber) {
  EXPECT_FALSE((Check{"", kNaN, {}, 1.0}.passed()));
  EXPECT_FALSE((Check{"", kNaN, 0.0, {}}.passed()));
  EXPECT_FALSE((Check{"", std::numeric_limits<double>::infinity(), {}, 1.0}.passed()));
}

TEST(Check, StaysFailedOnItsWayThroughJson) {
  const std::vector<Check> before = {{"a", std::numeric_limits<double>::infinity(), {}, 1.0, "why"},
                                     {"b", 2, 1.0, 3.0, ""}};
  const std::vector<Check> after = checks_from_json(Json::parse(checks_json(before).dump()), "a file");
  ASSERT_EQ(after.size(), 2U);
  EXPECT_FALSE(after[0].passed());
  EXPECT_EQ(after[0].source, "why");
  EXPECT_TRUE(after[1].passed());
  EXPECT_EQ(*after[1].at_least, 1.0);
  EXPECT_THROW(checks_from_json(Json::parse(R"([{"value": 1}])"), "a file"), WeightError);
}

TEST(PartResult, FailsWithOneCheckAndNamesIt) {
  PartResult result;
  result.checks = {{"good", 0, {}, 1.0}, {"bad", 2, {}, 1.0}, {"worse", 3, {}, 1.0}};
  result.judge();
  EXPECT_EQ(result.status, PartStatus::kFailed);
  EXPECT_EQ(result.reason, "bad is outside its bar");
  result = skipped_part("ranks", "one GPU");
  result.judge();
  EXPECT_EQ(result.status, PartStatus::kSkipped);
}

}  // namespace
}  // namespace sdtune::train
