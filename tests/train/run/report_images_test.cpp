#include "train/run/report_images.h"

#include <gtest/gtest.h>

#include <csignal>
#include <limits>

#include "model/image/image_read.h"
#include "model/image/png_write.h"
#include "model/pipeline/bundle.h"
#include "tests/support/no_portrait_readers.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_bundle.h"
#include "train/observe/page_images.h"
#include "train/run/train.h"

namespace sdtune::train {
namespace {

TEST(PairsThatFit, IsWhatTheTimeAllows) {
  EXPECT_EQ(pairs_that_fit(4, 100, 1, 5), 4);
  EXPECT_EQ(pairs_that_fit(4, 9, 1, 5), 2);
  EXPECT_EQ(pairs_that_fit(4, 6.9, 1, 5), 0);
  EXPECT_EQ(pairs_that_fit(4, -1, 1, 0), 0);
  EXPECT_EQ(pairs_that_fit(4, 1, 0, 0), 4);
}

class ReportImages : public testing::Test {
 protected:
  void SetUp() override {
    model::ModelBundle bundle = test::make_tiny_bundle(scratch_, false);
    model::save_bundle(real_file_system(), bundle, scratch_.path() / "base", torch::kFloat32);
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& weight : bundle.unet->parameters()) weight.mul_(1.5);
    model::save_bundle(real_file_system(), bundle, run_ / "model", torch::kFloat32);
    config_.run.base = (scratch_.path() / "base").string();
    config_.run.seed = 6;
    config_.data.resolution = 16;
    config_.data.instance_prompt = "a";
    config_.observe.validation_inference_steps = 2;
    config_.observe.report_images = 2;
  }
  std::int64_t write(double limit) {
    return write_report_images(real_file_system(), {config_, run_, torch::kCPU, torch::kFloat32, limit}, stop_);
  }
  Image image(const std::string& name) const { return model::read_image(comparison_folder(run_) / name); }

  test::ScratchFolder scratch_;
  const std::filesystem::path run_ = scratch_.path() / "run";
  TrainConfig config_;
  StopFlag stop_;
};

TEST_F(ReportImages, AreOfBaseAndModelAndOfTheSameSeeds) {
  ASSERT_EQ(write(std::numeric_limits<double>::infinity()), 2);
  for (const char* seed : {"00_seed-6.png", "01_seed-7.png"}) {
    EXPECT_NE(image(std::string("base-") + seed).rgb, image(std::string("model-") + seed).rgb);
  }
  EXPECT_NE(image("base-00_seed-6.png").rgb, image("base-01_seed-7.png").rgb);
  // With the base in the place of the model there is no difference: what differs above is the weights alone.
  std::filesystem::remove_all(run_ / "model");
  std::filesystem::copy(scratch_.path() / "base", run_ / "model", std::filesystem::copy_options::recursive);
  ASSERT_EQ(write(std::numeric_limits<double>::infinity()), 2);
  EXPECT_EQ(image("base-00_seed-6.png").rgb, image("model-00_seed-6.png").rgb);
}

TEST_F(ReportImages, AreNoneWithoutTimeOrWhereValidationShowsThem) {
  EXPECT_EQ(write(0), 0);
  config_.observe.report_images = 0;
  EXPECT_EQ(write(1e9), 0);
  config_.observe.report_images = 2;
  config_.observe.validation_prompt = "a";
  EXPECT_EQ(write(1e9), 0);
  EXPECT_FALSE(std::filesystem::exists(comparison_folder(run_)));
}

// A LoRA is attached to the base, so that what is shown is what `sample` makes of it.
TEST_F(ReportImages, OfALora) {
  std::filesystem::create_directories(scratch_.path() / "photos");
  const Image photo{16, 16, std::vector<std::uint8_t>(16 * 16 * 3, 200)};
  model::write_png(real_file_system(), scratch_.path() / "photos" / "0.png", photo, {});
  std::filesystem::remove_all(run_);
  config_.run.method = "lora";
  config_.run.output = run_.string();
  config_.run.device = "cpu";
  config_.run.max_train_steps = 3;
  config_.optim.learning_rate = 0.05;
  config_.data.images = (scratch_.path() / "photos").string();
  config_.data.trigger_word = "a";
  train(config_, {}, test::NoPortraitReaders(), stop_);
  ASSERT_EQ(write(std::numeric_limits<double>::infinity()), 2);
  EXPECT_NE(image("base-00_seed-6.png").rgb, image("model-00_seed-6.png").rgb);
}

TEST_F(ReportImages, EndAtAStop) {
  stop_.request(SIGTERM);
  EXPECT_EQ(write(1e9), 0);
}

}  // namespace
}  // namespace sdtune::train
