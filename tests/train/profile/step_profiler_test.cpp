// A whole run's profile is in tests/python/test_profile.py.
#include "train/profile/step_profiler.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <optional>
#include <string>
#include <vector>

#include "model/base/json.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;

class StepProfilerTest : public testing::Test {
 protected:
  StepProfiler profiler(std::int64_t steps) {
    return {real_file_system(), folder_.path() / "profile", steps, torch::kCPU,
            [this](const Problem& problem) { said_.push_back(problem.line()); }};
  }
  // Runs steps [first, end) and returns what the profiler said, which it may say once.
  static std::optional<ProfileEvent> run(StepProfiler& profiler, std::int64_t first, std::int64_t end) {
    std::optional<ProfileEvent> said;
    for (std::int64_t step = first; step < end; ++step) {
      profiler.begin_step(step);
      {
        RECORD_USER_SCOPE("forward");
        torch::ones({8, 8}).mm(torch::ones({8, 8}));
      }
      if (std::optional<ProfileEvent> event = profiler.end_step()) {
        EXPECT_FALSE(said);
        said = std::move(event);
      }
    }
    return said;
  }

  test::ScratchFolder folder_;
  std::vector<std::string> said_;
};

TEST_F(StepProfilerTest, WritesTheStepsBehindTheFirstTwo) {
  StepProfiler profiler = this->profiler(3);
  const std::optional<ProfileEvent> event = run(profiler, 10, 20);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->first_step, 13);
  EXPECT_EQ(event->steps, 3);
  ASSERT_EQ(event->phases.size(), 1U);
  EXPECT_EQ(event->phases[0].name, "forward");
  EXPECT_LE(event->phases[0].seconds, event->seconds);
  const Json trace = Json::parse(read_file(event->trace));
  std::vector<std::string> steps;
  std::int64_t products = 0;
  for (const Json& one : trace["traceEvents"]) {
    const std::string name = one.value("name", "");
    if (name.starts_with("ProfilerStep#") && one.value("ph", "") == "X") steps.push_back(name);
    if (name == "aten::mm") ++products;
  }
  EXPECT_EQ(steps, (std::vector<std::string>{"ProfilerStep#13", "ProfilerStep#14", "ProfilerStep#15"}));
  EXPECT_EQ(products, 3);
  EXPECT_EQ(read_file(folder_.path() / "profile/operators.txt"), profile_text(*event, event->operators.size()));
  EXPECT_FALSE(profiler.finish());
}

TEST_F(StepProfilerTest, TheEndOfTrainingEndsIt) {
  StepProfiler profiler = this->profiler(100);
  EXPECT_FALSE(run(profiler, 0, 4));
  const std::optional<ProfileEvent> event = profiler.finish();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->steps, 2);
  EXPECT_TRUE(fs::exists(event->trace));
}

TEST_F(StepProfilerTest, NoStepsAndTooFewStepsWriteNothing) {
  StepProfiler none = profiler(0), few = profiler(5);
  EXPECT_FALSE(run(none, 0, 9));
  EXPECT_FALSE(run(few, 0, 2));
  EXPECT_FALSE(none.finish());
  EXPECT_FALSE(few.finish());
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(StepProfilerTest, ASecondOneInThisProcessWarnsAndAFailureFreesThePlace) {
  {
    StepProfiler first = profiler(100), second = profiler(2);
    run(first, 0, 4);
    EXPECT_FALSE(run(second, 0, 6));
    EXPECT_EQ(said_, (std::vector<std::string>{
                         "profile: another run of this process is being profiled; training continues without it"}));
  }  // as where an exception ends a run
  StepProfiler third = profiler(1);
  EXPECT_TRUE(run(third, 0, 4));
}

TEST_F(StepProfilerTest, AFolderThatCannotBeWrittenIsAWarning) {
  folder_.write("profile", "a file");
  StepProfiler profiler = this->profiler(1);
  const std::optional<ProfileEvent> event = run(profiler, 0, 4);
  ASSERT_TRUE(event);
  EXPECT_TRUE(event->trace.empty());
  ASSERT_EQ(said_.size(), 1U);
  EXPECT_NE(said_[0].find("profile"), std::string::npos);
}

TEST(ProfileText, SharesRatesAndTheLimit) {
  ProfileEvent event;
  event.first_step = 3;
  event.steps = 2;
  event.seconds = 0.5;
  event.phases = {{"forward", 0.125}, {"backward", 0.25}};
  event.operators = {{"aten::mm", 0.25, 4, 5e9}, {"aten::add", 0.05, 2, 0}, {"aten::mul", 0.01, 2, 0}};
  EXPECT_EQ(profile_text(event, 2),
            "steps 3 to 4, 250.0 ms each\n"
            " 25.0 %  forward\n"
            " 50.0 %  backward\n"
            "\n"
            " share      ms a step    calls   GFLOP/s  operator\n"
            " 50.0 %       125.000        2        20  aten::mm\n"
            " 10.0 %        25.000        1         -  aten::add\n");
}

// Kernels run on behind their launch: 20 TFLOP in 10 ms would be the rate of no GPU.
TEST(ProfileText, LaunchesHaveNoRate) {
  ProfileEvent event;
  event.first_step = event.steps = 1;
  event.seconds = 0.5;
  event.is_of_launches = true;
  event.operators = {{"aten::convolution", 0.01, 4, 2e13}};
  const std::string text = profile_text(event, 1);
  EXPECT_NE(text.find("10.000        4         -  aten::convolution"), std::string::npos) << text;
}

}  // namespace
}  // namespace sdtune::train
