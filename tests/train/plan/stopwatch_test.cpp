#include "train/plan/stopwatch.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

// A run of four steps of 8 images, on a clock that is set by hand.
class Stopwatches : public testing::Test {
 protected:
  void begin() {
    now_ = 103;
    RunSummary summary;
    summary.batch = 8;
    watch_.on_start(summary);
  }
  void tell_step(std::int64_t step, double seconds) {
    StepEvent event;
    event.step = step;
    event.images_per_s = seconds > 0 ? 8 / seconds : 0;
    event.max_memory_bytes = 1000 + step;
    watch_.on_step(event);
  }

  double now_ = 100;
  Stopwatch watch_{[this] { return now_; }};
};

TEST_F(Stopwatches, TimesStepsThatAreToldAtOnceAndACheckpointBehindTheLast) {
  begin();
  now_ = 110;  // as before a checkpoint, where all that is pending is told
  tell_step(1, 2.5);
  tell_step(2, 0.5);
  tell_step(3, 0.25);
  now_ = 110.75;
  tell_step(4, 0.75);
  now_ = 121;
  watch_.on_checkpoint({.step = 3, .path = {}, .seconds = 12, .waited = 10});
  watch_.on_end({});
  const ProbedTimes& times = watch_.times();
  EXPECT_EQ(times.timed_steps, 3);
  EXPECT_DOUBLE_EQ(times.step, 0.5);
  EXPECT_DOUBLE_EQ(times.checkpoint, 10);
  EXPECT_DOUBLE_EQ(times.start, 3 + 2.5 - 0.5) << "what the first step takes longer is part of it";
  EXPECT_DOUBLE_EQ(times.finish, 121 - 110.75);
  EXPECT_EQ(times.peak_bytes, 1004);
}

TEST_F(Stopwatches, LeavesOutAStepInWhichNoTimePassed) {
  begin();
  tell_step(1, 0);
  tell_step(2, 0);
  tell_step(3, 0.5);
  watch_.on_end({});
  EXPECT_EQ(watch_.times().timed_steps, 1);
  EXPECT_DOUBLE_EQ(watch_.times().step, 0.5);
  EXPECT_DOUBLE_EQ(watch_.times().start, 2.5);
}

TEST_F(Stopwatches, TimesClassImagesApartFromTheStart) {
  now_ = 101;
  watch_.on_phase("loading the model", 0, 0);
  now_ = 101.5;
  watch_.on_phase("generating class images", 0, 2);
  now_ = 102.5;
  watch_.on_phase("generating class images", 2, 2);
  begin();
  tell_step(1, 0.5);
  tell_step(2, 0.5);
  watch_.on_end({});
  EXPECT_DOUBLE_EQ(watch_.times().class_image, 0.75);
  EXPECT_DOUBLE_EQ(watch_.times().start, 1.5);
}

}  // namespace
}  // namespace sdtune::train
