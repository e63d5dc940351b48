#include "train/run/export_model.h"

#include <gtest/gtest.h>

#include "model/files/file_system.h"
#include "model/weights/safetensors_file.h"
#include "tests/support/no_portrait_readers.h"
#include "tests/support/tiny_training.h"
#include "train/config/run_folder.h"
#include "train/run/train.h"

namespace sdtune::train {
namespace {

class ExportModel : public testing::Test {
 protected:
  void SetUp() override {
    test::write_tiny_training(scratch_);
    config_.run.base = (scratch_.path() / "base").string();
    config_.run.output = (scratch_.path() / "run").string();
    config_.run.device = "cpu";
    config_.run.max_train_steps = 1;
    config_.data.images = (scratch_.path() / "photos").string();
    config_.data.instance_prompt = "a";
    config_.data.trigger_word = "a";
    config_.observe.report_to = {"none"};
  }
  std::filesystem::path trained() {
    StopFlag stop;
    train(config_, {}, test::NoPortraitReaders(), stop);
    return run_folder(config_).model();
  }

  test::ScratchFolder scratch_;
  TrainConfig config_;
};

TEST_F(ExportModel, TakesTheBasesOwnDefaultsAlong) {
  const std::string text = "learning_rate: 3.0e-4\n";
  write_file_atomically(real_file_system(), scratch_.path() / "base" / "sdtune_defaults_lora.yaml", text);
  const std::filesystem::path model = trained();
  EXPECT_EQ(read_file(model / "sdtune_defaults_lora.yaml"), text);
  EXPECT_FALSE(is_file(model / "sdtune_defaults.yaml"));  // the base has none
}

// Of a budget that is spent at once: what kohya's tools show are the steps of these weights.
TEST_F(ExportModel, SaysTheStepsOfItsWeights) {
  config_.run.method = "lora";
  config_.run.max_train_steps = 3;
  config_.rental.max_hours = 1e-9;
  const model::SafetensorsFile file(trained() / "run.safetensors");
  EXPECT_EQ(file.header().metadata.at("ss_steps"), "0");
  EXPECT_EQ(file.header().metadata.at("ss_max_train_steps"), "3");
}

}  // namespace
}  // namespace sdtune::train
