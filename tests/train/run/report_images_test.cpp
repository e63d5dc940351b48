#include "train/run/report_images.h"

#include <gtest/gtest.h>

#include <csignal>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "model/files/file_system.h"
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

std::pair<std::int64_t, std::int64_t> fits(double left, double load, ImageTime image) {
  const PairsThatFit found = pairs_that_fit({4, 25}, left, load, image);
  return {found.pairs, found.steps};
}

TEST(PairsThatFit, IsWhatTheTimeAllows) {
  using Found = std::pair<std::int64_t, std::int64_t>;
  constexpr ImageTime kImage{0.5, 0.02};  // 1 s
  EXPECT_EQ(fits(100, 5, kImage), Found(4, 25));
  EXPECT_EQ(fits(9.1, 5, kImage), Found(2, 25));
  EXPECT_EQ(fits(7.1, 5, kImage), Found(1, 25));
  EXPECT_EQ(fits(-1, 0, kImage), Found(0, 0));
  EXPECT_EQ(fits(1, 0, {0, 0}), Found(4, 25));
}

TEST(PairsThatFit, IsOneOfFewerStepsBeforeItIsNone) {
  using Found = std::pair<std::int64_t, std::int64_t>;
  constexpr ImageTime kImage{0.5, 0.02};
  EXPECT_EQ(fits(6.99, 5, kImage), Found(1, 24));
  EXPECT_EQ(fits(6.41, 5, kImage), Found(1, 10));
  EXPECT_EQ(fits(6.39, 5, kImage), Found(0, 0));
}

Photo captioned_photo(const std::string& caption, std::size_t subject) {
  Photo photo;
  photo.caption = caption;
  photo.subject = subject;
  return photo;
}

// Kohya's folders and captions of all photos leave the instance prompt untrained.
TEST(ReportPrompt, HasWordsThatWereTrained) {
  DataOptions options;
  const auto prompt_of = [&](const std::vector<Photo>& photos) { return report_prompt(options, photos); };
  EXPECT_EQ(prompt_of({captioned_photo("sks person laughs", 0)}), "a photo of sks person");
  EXPECT_EQ(prompt_of({captioned_photo("ohwx man", 0), captioned_photo("ohwx man laughs", 0)}), "ohwx man");
  EXPECT_EQ(prompt_of({captioned_photo("a photo of sks person", 1), captioned_photo("ohwx man", 0)}), "ohwx man");
  EXPECT_EQ(prompt_of({}), "a photo of sks person");
  options.trigger_word = "ohwx";
  EXPECT_EQ(prompt_of({captioned_photo("ohwx, on a beach", 0)}), "ohwx, on a beach");
  options.instance_prompt = "a photo of [trigger]";
  EXPECT_EQ(prompt_of({captioned_photo("ohwx, on a beach", 0)}), "a photo of ohwx");
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

TEST_F(ReportImages, AreOfTheGivenPrompt) {
  ASSERT_EQ(write_report_images(real_file_system(),
                                {config_, run_, torch::kCPU, torch::kFloat32, 1e9, &monotonic_seconds, "ab"}, stop_),
            2);
  EXPECT_EQ(read_file(comparison_folder(run_) / "prompt.txt"), "ab");
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

double seconds_told = 0;
double second_a_reading() {
  return seconds_told += 1;
}

// On this clock loading takes 1 s, an image 1 s, and 6 s are gone when the images are counted: a pair takes 2 s, and
// loading the model 1 s.
TEST_F(ReportImages, AreAsManyAsALimitAllows) {
  config_.observe.report_images = 4;
  for (const auto& [limit, pairs] : {std::pair(8.5, 0), {9.5, 1}, {12.5, 2}, {13.5, 3}, {100.0, 4}}) {
    const std::int64_t made = write_report_images(
        real_file_system(), {config_, run_, torch::kCPU, torch::kFloat32, limit, &second_a_reading}, stop_);
    EXPECT_EQ(made, pairs) << limit;
    for (std::int64_t i = 0; pairs > 0 && i < 4; ++i) {
      const std::string seed = "0" + std::to_string(i) + "_seed-" + std::to_string(6 + i) + ".png";
      for (const char* whose : {"base-", "model-"}) {
        EXPECT_EQ(std::filesystem::exists(comparison_folder(run_) / (whose + seed)), i < pairs) << limit << ' ' << seed;
      }
    }
  }
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
