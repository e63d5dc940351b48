#include "train/run/export_model.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

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

  // The header of the file with kohya's names.
  std::map<std::string, std::string> header_of_trained_lora() {
    config_.run.method = "lora";
    return model::SafetensorsFile(trained() / "run.safetensors").header().metadata;
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

TEST_F(ExportModel, ALoraOfABaseThatPredictsX0IsWritten) {
  write_file_atomically(real_file_system(), scratch_.path() / "base" / "scheduler" / "scheduler_config.json",
                        R"({"_class_name": "DDIMScheduler", "steps_offset": 1, "prediction_type": "sample"})");
  const std::map<std::string, std::string> metadata = header_of_trained_lora();
  EXPECT_EQ(metadata.at("modelspec.title"), "run");
  EXPECT_EQ(metadata.count("modelspec.prediction_type"), 0u) << "there is no word for it";
}

TEST_F(ExportModel, TheVersionOfTheBaseIsKohyas) {
  model::ModelBundle base = test::make_tiny_bundle(scratch_, false);
  constexpr std::int64_t kWidth = 1024;  // of SD 2.x
  base.text_encoder = test::make_tiny_text_encoder(kWidth, false);
  base.unet = model::UNet2DConditionModel(model::UNetConfig::from_json(test::tiny_unet_config(kWidth), "unet"));
  base.scheduler_config["prediction_type"] = "v_prediction";
  std::filesystem::remove_all(scratch_.path() / "base");
  model::save_bundle(real_file_system(), base, scratch_.path() / "base", torch::kFloat32);
  const std::map<std::string, std::string> metadata = header_of_trained_lora();
  EXPECT_EQ(metadata.at("ss_base_model_version"), "sd_v2_v");
  EXPECT_EQ(metadata.at("ss_v2"), "True");
  EXPECT_EQ(metadata.at("modelspec.prediction_type"), "v");
}

}  // namespace
}  // namespace sdtune::train
