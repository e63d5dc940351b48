#include "train/run/micro_batch.h"

#include <c10/core/Allocator.h>
#include <gtest/gtest.h>

#include <string>

#include "model/core/cuda_table.h"
#include "tests/support/no_portrait_readers.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_training.h"
#include "train/preflight/preflight.h"
#include "train/run/build_run.h"
#include "train/run/train_step.h"

namespace sdtune::train {
namespace {

constexpr std::int64_t kBatch = 6;
constexpr std::int64_t kSteps = 4;

using TrainingRun = Run;  // testing::Test has a Run too

TEST(MicroBatch, GoesDownTheDivisors) {
  std::vector<std::int64_t> met;
  for (std::int64_t micro = 12; micro > 0; micro = next_smaller_micro_batch(12, micro)) met.push_back(micro);
  EXPECT_EQ(met, (std::vector<std::int64_t>{12, 6, 4, 3, 2, 1}));
}

TEST(MicroBatch, IsTheLargestThatFits) {
  EXPECT_EQ(largest_micro_batch(12, 100, 10, 210), 12);
  EXPECT_EQ(largest_micro_batch(12, 100, 10, 209), 6);
  EXPECT_EQ(largest_micro_batch(12, 100, 10, 119), 2);
  EXPECT_EQ(largest_micro_batch(12, 100, 10, 50), 1);  // there is nothing smaller
  EXPECT_EQ(largest_micro_batch(1, 100, 10, 50), 1);
}

class FittedRun : public testing::Test {
 protected:
  void SetUp() override { test::write_tiny_training(scratch_); }

  std::unique_ptr<TrainingRun> make_run(const std::string& micro_batch) {
    TrainConfig config;
    config.run.base = (scratch_.path() / "base").string();
    config.run.output = (scratch_.path() / "run").string();
    config.run.train_batch_size = kBatch;
    config.run.max_train_steps = kSteps;
    config.run.micro_batch = micro_batch;
    config.data.images = (scratch_.path() / "photos").string();
    config.data.instance_prompt = "a";
    config.optim.learning_rate = 1e-3;
    const Preflight preflight = run_preflight(config, test::NoPortraitReaders(), PhotoUse::kTrain);
    return build_run(config, std::make_unique<SingleProcess>(), torch::kCPU, preflight, {}, stop_);
  }

  // The loss of every step.
  static std::vector<double> train(TrainingRun& run) {
    std::vector<double> losses;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      losses.push_back(train_step(run, static_cast<std::uint64_t>(step))[kLossInstance].item<double>());
    }
    return losses;
  }

  // Refuses more than `most` photos at once from that step on, as a device does that something else fills.
  static void fill_memory(TrainingRun& run, std::uint64_t from, std::int64_t most) {
    run.before_micro_batch = [=](std::uint64_t step, std::int64_t micro) {
      if (step >= from && micro > most) throw c10::OutOfMemoryError({__func__, __FILE__, __LINE__}, "out of memory");
    };
  }

  test::ScratchFolder scratch_;
  StopFlag stop_;
};

TEST_F(FittedRun, TakesTheBatchWhenThereIsRoom) {
  const auto run = make_run("auto");
  EXPECT_EQ(run->micro_batch, kBatch);
  EXPECT_NE(run->notes.back().find("micro_batch is 6 of 6"), std::string::npos) << run->notes.back();
}

// The trial must leave no trace, and a step that ran out of memory must be the same step again.
TEST_F(FittedRun, LosesNothingWhereverMemoryRunsOut) {
  const std::vector<double> wanted = train(*make_run(""));
  EXPECT_EQ(train(*make_run("auto")), wanted);
  for (std::uint64_t from = 0; from < kSteps; ++from) {
    const auto run = make_run("auto");
    fill_memory(*run, from, 2);
    const std::vector<double> losses = train(*run);
    for (std::size_t step = 0; step < losses.size(); ++step) {
      EXPECT_NEAR(losses[step], wanted[step], 1e-5 * wanted[step]) << "full from " << from << ", step " << step;
    }
    EXPECT_EQ(run->micro_batch, 2);
    EXPECT_EQ(run->warnings.size(), 2U);  // 6 to 3 to 2
    EXPECT_NE(run->warnings.front().line().find("in step " + std::to_string(from + 1) + " with 6"), std::string::npos)
        << run->warnings.front().line();
  }
}

// Which is no error of LibTorch's.
TEST_F(FittedRun, FitsWhereOneOfOurKernelsFoundNoMemory) {
  for (const std::uint64_t from : {std::uint64_t{0}, std::uint64_t{1}}) {
    const auto run = make_run("auto");
    run->before_micro_batch = [=](std::uint64_t step, std::int64_t micro) {
      if (step >= from && micro > 2) throw model::KernelOutOfMemory("kernel group_norm on cuda:0: out of memory");
    };
    train_step(*run, 0);
    train_step(*run, 1);
    EXPECT_EQ(run->micro_batch, 2) << from;
  }
}

TEST_F(FittedRun, GivesUpWhenOnePhotoIsTooMuch) {
  const auto run = make_run("auto");
  fill_memory(*run, 1, 0);
  train_step(*run, 0);
  EXPECT_THROW(train_step(*run, 1), c10::OutOfMemoryError);
  const auto given = make_run("6");  // a number is the user's word
  fill_memory(*given, 0, 2);
  EXPECT_THROW(train_step(*given, 0), c10::OutOfMemoryError);
}

TEST(MemoryHint, NamesWhatIsNotOnYet) {
  TrainConfig config;
  EXPECT_NE(memory_hint(config).find("gradient_checkpointing"), std::string::npos);
  EXPECT_NE(memory_hint(config).find("method: lora"), std::string::npos);
  config.run.gradient_checkpointing = true;
  config.run.method = "lora";
  EXPECT_EQ(memory_hint(config).find("gradient_checkpointing"), std::string::npos);
  EXPECT_EQ(memory_hint(config).find("lora"), std::string::npos);
}

// With lion use_8bit_adam is refused, and adamw_8bit is it.
TEST(MemoryHint, NamesEightBitAdamToAdamAlone) {
  for (const char* optimizer : {"adamw", "adamw_8bit", "adafactor", "lion", "prodigy"}) {
    TrainConfig config;
    config.optim.optimizer = optimizer;
    const bool is_named = memory_hint(config).find("use_8bit_adam") != std::string::npos;
    EXPECT_EQ(is_named, std::string(optimizer) == "adamw") << optimizer;
  }
}

}  // namespace
}  // namespace sdtune::train
