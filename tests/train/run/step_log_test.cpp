// The times that a run tells. On a GPU: tests/python/test_background_checkpoints.py.
#include "train/run/step_log.h"

#include <gtest/gtest.h>

#include <chrono>

#include "model/base/clock.h"
#include "tests/support/no_portrait_readers.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_training.h"
#include "train/run/train.h"

namespace sdtune::train {
namespace {

// Keeps the first step, and how long before it the base's validation was told.
class FirstStepKeeper final : public Observer {
 public:
  void on_validation(const ValidationEvent& event) override {
    if (event.step == 0) validated_ = std::chrono::steady_clock::now();
  }
  void on_step(const StepEvent& event) override {
    if (event.step != 1) return;
    since_validation = seconds_since(validated_);
    first = event;
  }
  double since_validation = 0;
  StepEvent first;

 private:
  std::chrono::steady_clock::time_point validated_;
};

TEST(StepLog, CountsFromTheFirstStepAndNotFromTheValidationBeforeIt) {
  const test::ScratchFolder scratch;
  test::write_tiny_training(scratch);
  TrainConfig config;
  config.run.base = (scratch.path() / "base").string();
  config.run.output = (scratch.path() / "run").string();
  config.run.device = "cpu";
  config.run.train_batch_size = 1;
  config.run.max_train_steps = 2;
  config.data.images = (scratch.path() / "photos").string();
  config.data.instance_prompt = "a";
  config.data.trigger_word = "a";
  config.observe.report_to = {"none"};
  config.observe.report_images = 0;
  config.observe.validation_prompt = "a";
  config.observe.num_validation_images = 1;
  config.observe.validation_inference_steps = 4;
  FirstStepKeeper keeper;
  StopFlag stop;
  train(config, {&keeper}, test::NoPortraitReaders(), stop);
  ASSERT_EQ(keeper.first.step, 1);
  EXPECT_GT(keeper.first.elapsed, 0);
  EXPECT_LE(keeper.first.elapsed, keeper.since_validation);
  EXPECT_DOUBLE_EQ(keeper.first.images_per_s, 1 / keeper.first.elapsed) << "all of the first step is counted";
}

}  // namespace
}  // namespace sdtune::train
