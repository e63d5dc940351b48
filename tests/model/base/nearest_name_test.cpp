#include "model/base/nearest_name.h"

#include <gtest/gtest.h>

namespace sdtune {
namespace {

TEST(NearestName, FindsTyposAndNothingFarAway) {
  const std::vector<std::string> known = {"learning_rate", "lr_scheduler", "resolution", "seed", "images"};
  EXPECT_EQ(nearest_name("learning_rat", known), "learning_rate");
  EXPECT_EQ(nearest_name("learnign-rate", known), "learning_rate");
  EXPECT_EQ(nearest_name("lr_schedule", known), "lr_scheduler");
  EXPECT_EQ(nearest_name("sede", known), "seed");
  EXPECT_EQ(nearest_name("image", known), "images");
  EXPECT_EQ(nearest_name("banana_bread", known), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'x'), known), "");
}

}  // namespace
}  // namespace sdtune
