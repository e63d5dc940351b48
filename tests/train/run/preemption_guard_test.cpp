// The clouds themselves are in tests/python/test_preemption.py; here is whether a save fits.
#include "train/run/preemption_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace sdtune::train {
namespace {

using ::testing::HasSubstr;

class Guard : public testing::Test {
 protected:
  PreemptionGuard guard(const std::string& cloud) {
    RentalOptions options;
    options.preemption = cloud;
    options.preemption_address = "127.0.0.1:1";  // where nothing answers
    return {options, true, stop_, [this](const Problem& problem) { warnings_.push_back(problem.line()); }};
  }
  static StepEvent step(std::int64_t number, double elapsed) {
    StepEvent event;
    event.step = number;
    event.elapsed = elapsed;
    return event;
  }
  std::size_t late() const {
    return static_cast<std::size_t>(std::count_if(warnings_.begin(), warnings_.end(), [](const std::string& line) {
      return line.find("a checkpoint takes") != std::string::npos;
    }));
  }
  StopFlag stop_;
  std::vector<std::string> warnings_;
};

TEST_F(Guard, SaysOnceThatASaveDoesNotFit) {
  PreemptionGuard google = guard("google");  // 30 s, of which 1 s may pass before the next question
  google.expect_save(28.9, "estimated from this disk");
  EXPECT_EQ(late(), 0U);
  google.expect_save(29.1, "estimated from this disk");
  ASSERT_EQ(late(), 1U);
  EXPECT_THAT(warnings_.back(), HasSubstr("a checkpoint takes 29.1 s (estimated from this disk)"));
  EXPECT_THAT(warnings_.back(), HasSubstr("the 30 s which google gives"));
  google.on_checkpoint({5, {}, 60, 60});
  EXPECT_EQ(late(), 1U);
}

TEST_F(Guard, CountsTheStepThatMustEndFirst) {
  PreemptionGuard azure = guard("azure");
  azure.on_step(step(1, 100));  // the first one warms up
  azure.on_step(step(2, 110));
  azure.on_checkpoint({2, {}, 18, 18});
  EXPECT_EQ(late(), 0U);
  azure.on_step(step(3, 160));  // with a checkpoint in between
  azure.on_checkpoint({3, {}, 18, 18});
  EXPECT_EQ(late(), 0U);
  azure.on_step(step(4, 170));
  azure.on_step(step(5, 182));
  azure.on_checkpoint({4, {}, 18, 18});
  EXPECT_EQ(late(), 1U);
}

// The last one waits for the one before, which a GPU does not wait for.
TEST_F(Guard, CountsACheckpointThatIsBeingWrittenTwice) {
  PreemptionGuard google = guard("google");
  google.on_checkpoint({1, {}, 16, 16});
  EXPECT_EQ(late(), 0U);
  google.on_checkpoint({2, {}, 14, 0.5});
  EXPECT_EQ(late(), 0U);
  google.on_checkpoint({3, {}, 16, 0.5});
  EXPECT_EQ(late(), 1U);
}

TEST_F(Guard, WithoutACloudDoesNothing) {
  PreemptionGuard none = guard("none");
  EXPECT_FALSE(none.watches());
  none.expect_save(1e9, "");
  none.on_step(step(1, 1));
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(none.notice(), "");
  EXPECT_EQ(stop_.signal(), 0);
}

}  // namespace
}  // namespace sdtune::train
