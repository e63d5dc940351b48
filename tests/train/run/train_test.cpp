// A run that is ended by an exception, ours or not.
#include "train/run/train.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <new>
#include <stdexcept>
#include <system_error>

#include "model/files/json_file.h"
#include "model/image/png_write.h"
#include "model/pipeline/bundle.h"
#include "tests/support/no_portrait_readers.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_bundle.h"
#include "train/config/run_folder.h"
#include "train/preflight/preflight.h"
#include "train/run/build_run.h"
#include "train/run/trainer.h"

namespace sdtune::train {
namespace {

// Throws in a step or a validation, and notes how the run ended.
class Thrower final : public Observer {
 public:
  void on_step(const StepEvent& event) override {
    if (in_step && event.step == 2) in_step();
  }
  void on_validation(const ValidationEvent& event) override {
    validated.push_back(event.step);
    if (in_validation && event.step == 2) in_validation();
  }
  void on_warning(const Problem& problem) override {
    warnings.push_back(problem.line());
    if (in_warning) in_warning();
  }
  void on_end(const EndEvent& event) override {
    ends.push_back(event.end);
    step_of_end = event.step;
  }

  std::function<void()> in_step, in_validation, in_warning;
  std::vector<RunEnd> ends;
  std::int64_t step_of_end = 0;  // of the newest
  std::vector<std::int64_t> validated;
  std::vector<std::string> warnings;
};

// A type of this test alone, so that it cannot have been made anew from a base class.
struct ForeignError : std::runtime_error {
  using std::runtime_error::runtime_error;
  int payload = 7;
};

// One rank that counts how often all sums were to be over while `is_counted` says so.
class SettlingGroup final : public ProcessGroup {
 public:
  std::int64_t rank() const override { return 0; }
  std::int64_t world_size() const override { return 1; }
  std::unique_ptr<PendingReduce> start_all_reduce_sum(torch::Tensor) override { return std::make_unique<Done>(); }
  void broadcast(torch::Tensor, std::int64_t) override {}
  void barrier() override {}
  std::vector<std::string> gather_text(const std::string& text) override { return {text}; }
  void settle() override {
    if (is_counted && is_counted()) ++settled;
  }

  std::function<bool()> is_counted;
  int settled = 0;

 private:
  struct Done final : PendingReduce {
    void wait() override {}
  };
};

class TrainEnds : public testing::Test {
 protected:
  void SetUp() override {
    model::save_bundle(real_file_system(), test::make_tiny_bundle(scratch_, false), scratch_.path() / "base",
                       torch::kFloat32);
    for (const char* folder : {"photos", "held out"}) {
      std::filesystem::create_directories(scratch_.path() / folder);
      for (int photo = 0; photo < 2; ++photo) {
        const Image image{16, 16, std::vector<std::uint8_t>(16 * 16 * 3, static_cast<std::uint8_t>(40 * photo + 9))};
        model::write_png(real_file_system(), scratch_.path() / folder / (std::to_string(photo) + ".png"), image, {});
      }
    }
    config_.run.base = (scratch_.path() / "base").string();
    config_.run.output = (scratch_.path() / "run").string();
    config_.run.device = "cpu";
    config_.run.max_train_steps = 4;
    config_.data.images = (scratch_.path() / "photos").string();
    config_.data.instance_prompt = "a";
    config_.data.trigger_word = "a";
    config_.observe.report_to = {"none"};
  }

  void run() { train(config_, {&thrower_}, test::NoPortraitReaders(), stop_); }
  Json last_error() const { return read_json(run_folder(config_).last_error()); }

  test::ScratchFolder scratch_;
  StopFlag stop_;
  TrainConfig config_;
  Thrower thrower_;
  const std::vector<Observer*> observers_ = {&thrower_};
};

TEST_F(TrainEnds, WithAnExceptionOfAnotherLibrary) {
  thrower_.in_step = [] { throw ForeignError("the program has a fault\nand a second line"); };
  try {
    run();
    FAIL() << "the exception is gone";
  } catch (const ForeignError& error) {
    EXPECT_EQ(error.payload, 7);  // not sliced
  }
  EXPECT_EQ(thrower_.ends, (std::vector<RunEnd>{RunEnd::kFailed}));
  EXPECT_EQ(last_error()["exit_code"], 1);
  EXPECT_EQ(last_error()["problems"][0]["what"], "the program has a fault");
}

TEST_F(TrainEnds, WhenMemoryOfTheSystemIsGone) {
  thrower_.in_step = [] { throw std::bad_alloc(); };
  EXPECT_THROW(run(), std::bad_alloc);
  EXPECT_EQ(thrower_.ends, (std::vector<RunEnd>{RunEnd::kFailed}));
  EXPECT_EQ(last_error()["exit_code"], 4);
}

// As a disk of the network that is gone: the C++ library's own functions throw it. The program's exit code is the same.
TEST_F(TrainEnds, WithTheExitCodeOfADiskThatFails) {
  using std::filesystem::filesystem_error;
  thrower_.in_step = [] { throw filesystem_error("status", "/runs/me", std::make_error_code(std::errc::io_error)); };
  EXPECT_THROW(run(), filesystem_error);
  EXPECT_EQ(last_error()["exit_code"], 5);
  EXPECT_EQ(last_error()["problems"][0]["where"], "/runs/me");
}

TEST_F(TrainEnds, WithAnErrorOfLibTorchAsItWas) {
  thrower_.in_step = [] { throw c10::IndexError({__func__, __FILE__, __LINE__}, "index 9 is out of range"); };
  EXPECT_THROW(run(), c10::IndexError);  // a c10::Error that was copied is no IndexError any more
  EXPECT_EQ(thrower_.ends, (std::vector<RunEnd>{RunEnd::kFailed}));
  EXPECT_EQ(last_error()["exit_code"], 1);
  EXPECT_THAT(last_error()["problems"][0]["what"].get<std::string>(), testing::HasSubstr("index 9"));
}

TEST_F(TrainEnds, WithItsModelThoughValidationsFailed) {
  config_.observe.validation_prompt = "a";
  config_.observe.validation_steps = 2;
  config_.observe.num_validation_images = 1;
  config_.observe.validation_inference_steps = 1;
  const test::NoPortraitReaders portraits;
  const Preflight preflight = run_preflight(config_, portraits, PhotoUse::kTrain);
  std::filesystem::create_directories(run_folder(config_).root);
  const auto run = build_run(config_, std::make_unique<SingleProcess>(), torch::kCPU, preflight, {}, stop_);
  thrower_.in_step = [&] { run->config.data.resolution = 15; };  // which no VAE makes an image of
  const TrainResult result = Trainer(*run, observers_, portraits, stop_).train();
  EXPECT_EQ(result.code, ExitCode::kDone);
  EXPECT_EQ(result.step, 4);
  EXPECT_TRUE(std::filesystem::exists(result.model_path / "model_index.json"));
  EXPECT_THAT(thrower_.validated, testing::ElementsAre(0));
  ASSERT_EQ(thrower_.warnings.size(), 2U);
  EXPECT_THAT(thrower_.warnings[0], testing::StartsWith("validation: of step 2 failed: "));
  EXPECT_THAT(thrower_.warnings[1], testing::StartsWith("validation: of step 4 failed: "));
  for (const char* step : {"step-00000002", "step-00000004"}) {
    EXPECT_TRUE(std::filesystem::exists(run_folder(config_).checkpoints() / step)) << step;
  }
}

// Beside the averages the weights are kept as they are trained. Here one of them takes more memory than there is.
TEST_F(TrainEnds, WithItsModelThoughTheAveragesHadNoMemory) {
  config_.observe.validation_data_dir = (scratch_.path() / "held out").string();
  config_.observe.validation_steps = 2;
  config_.optim.use_ema = true;
  const test::NoPortraitReaders portraits;
  const Preflight preflight = run_preflight(config_, portraits, PhotoUse::kTrain);
  std::filesystem::create_directories(run_folder(config_).root);
  const auto run = build_run(config_, std::make_unique<SingleProcess>(), torch::kCPU, preflight, {}, stop_);
  torch::Tensor weight = run->shards->parameters().front().weight;
  const torch::Tensor values = weight.detach();
  thrower_.in_step = [&] { weight.set_data(torch::zeros({1}).expand({std::int64_t{1} << 50})); };
  thrower_.in_warning = [&] { weight.set_data(values); };
  const TrainResult result = Trainer(*run, observers_, portraits, stop_).train();
  EXPECT_EQ(result.code, ExitCode::kDone);
  EXPECT_THAT(thrower_.validated, testing::ElementsAre(0, 4));
  ASSERT_EQ(thrower_.warnings.size(), 1U);
  EXPECT_THAT(thrower_.warnings[0], testing::StartsWith("validation: of step 2 failed: "));
  EXPECT_THAT(thrower_.warnings[0], testing::HasSubstr("can't allocate memory"));
  EXPECT_TRUE(std::filesystem::exists(run_folder(config_).checkpoints() / "step-00000002"));
}

// Averages come from other ranks, and the host reads what is computed with them.
TEST_F(TrainEnds, WithAveragesThatWereSettledBeforeTheyWereUsed) {
  config_.observe.validation_data_dir = (scratch_.path() / "held out").string();
  config_.observe.validation_steps = 2;
  config_.optim.use_ema = true;
  const test::NoPortraitReaders portraits;
  const Preflight preflight = run_preflight(config_, portraits, PhotoUse::kTrain);
  std::filesystem::create_directories(run_folder(config_).root);
  const auto group = std::make_shared<SettlingGroup>();
  const auto run = build_run(config_, group, torch::kCPU, preflight, {}, stop_);
  run->uses_chunks = false;  // as with several ranks
  const torch::Tensor weight = run->shards->parameters().front().weight;
  const torch::Tensor average = run->average->values().front().second;
  thrower_.in_step = [&] {  // before it both are the same
    group->is_counted = [&] { return weight.equal(average); };
  };
  EXPECT_EQ(Trainer(*run, observers_, portraits, stop_).train().code, ExitCode::kDone);
  EXPECT_THAT(thrower_.validated, testing::ElementsAre(0, 2, 4));
  EXPECT_EQ(group->settled, 2);
}

TEST_F(TrainEnds, WithTheErrorOfAValidationThatFailsBeforeTheFirstStep) {
  config_.observe.validation_prompt = "a";
  const test::NoPortraitReaders portraits;
  const Preflight preflight = run_preflight(config_, portraits, PhotoUse::kTrain);
  std::filesystem::create_directories(run_folder(config_).root);
  const auto run = build_run(config_, std::make_unique<SingleProcess>(), torch::kCPU, preflight, {}, stop_);
  run->config.data.resolution = 15;
  EXPECT_THROW(Trainer(*run, observers_, portraits, stop_).train(), Error);
  EXPECT_FALSE(std::filesystem::exists(run_folder(config_).checkpoints()));
}

TEST_F(TrainEnds, WithWhatWasTrainedSavedWhereOnlyAValidationFailed) {
  config_.observe.validation_data_dir = (scratch_.path() / "held out").string();
  config_.observe.validation_steps = 2;
  thrower_.in_validation = [] { throw ForeignError("no image viewer"); };
  EXPECT_THROW(run(), ForeignError);
  EXPECT_TRUE(std::filesystem::exists(run_folder(config_).checkpoints() / "step-00000002"));
  EXPECT_EQ(thrower_.ends, (std::vector<RunEnd>{RunEnd::kFailed}));
  EXPECT_EQ(thrower_.step_of_end, 2);
  // Nothing is lost: the run resumes from there.
  EXPECT_EQ(last_error()["exit_code"], 1);
  thrower_.in_validation = nullptr;
  config_.checkpoint.resume_from_checkpoint = "latest";
  run();
  EXPECT_EQ(thrower_.ends.back(), RunEnd::kDone);
  EXPECT_FALSE(std::filesystem::exists(run_folder(config_).last_error())) << "it is that of the attempt before";
}

// A model of many gigabytes whose export was killed would lie beside the new run for ever.
TEST_F(TrainEnds, WithNothingLeftOfTheRunThatItOverwrites) {
  std::vector<std::filesystem::path> left;
  for (const char* name : {"model", ".model.partial", ".model.old", "best", ".best.partial", ".best.old"}) {
    left.push_back(scratch_.path() / "run" / name);
    scratch_.write("run/" + std::string(name) + "/unet/weights", "of an earlier run");
  }
  std::vector<std::filesystem::path> seen;
  thrower_.in_step = [&] {  // before the model of this run is written
    std::copy_if(left.begin(), left.end(), std::back_inserter(seen),
                 [](const std::filesystem::path& path) { return std::filesystem::exists(path); });
  };
  config_.run.overwrite = true;
  run();
  EXPECT_TRUE(seen.empty()) << seen.front();
  EXPECT_EQ(thrower_.ends, (std::vector<RunEnd>{RunEnd::kDone}));
}

}  // namespace
}  // namespace sdtune::train
