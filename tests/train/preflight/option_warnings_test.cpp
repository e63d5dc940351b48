#include "train/preflight/option_warnings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

std::vector<std::string> unused_options(const TrainConfig& config) {
  std::vector<std::string> names;
  for (const Problem& warning : option_warnings(config)) names.push_back(warning.where);
  return names;
}

using UnusedNames = std::vector<std::string>;

// Without a word they would be taken for the reason of what the run learns.
TEST(OptionWarnings, NameWhatTheRunDoesNotUse) {
  TrainConfig config;
  config.optim.text_encoder_lr = 1e-5;
  config.optim.lr_warmup_steps = 50;
  EXPECT_EQ(unused_options(config), UnusedNames()) << "not given by anyone";
  config.origins = {
      {"text_encoder_lr", "--text-encoder-lr"}, {"lr_warmup_steps", "me.yaml:3"}, {"ema_decay", "me.yaml:4"}};
  ASSERT_EQ(unused_options(config), (UnusedNames{"text_encoder_lr", "lr_warmup_steps"})) << "ema_decay has its default";
  EXPECT_EQ(option_warnings(config).front().line(),
            "text_encoder_lr: has no effect unless train_text_encoder is true (got 1.0e-05)");
  config.run.train_text_encoder = true;
  config.optim.lr_scheduler = "constant_with_warmup";
  EXPECT_EQ(unused_options(config), UnusedNames());
}

TEST(OptionWarnings, KnowEveryOptionByItsName) {
  TrainConfig config;
  config.objective.huber_c = 0.5;
  config.objective.unmasked_weight = 0.5;
  config.data.min_bucket_reso = 64;
  config.data.num_class_images = 7;
  config.optim.ema_decay = 0.5;
  config.optim.lr_num_cycles = 3;
  config.optim.lr_power = 2;
  config.run.max_train_steps = 10;
  config.run.num_train_epochs = 2;
  for (const Field& field : config.fields()) config.origins[field.info.name] = "--" + field.info.name;
  EXPECT_EQ(unused_options(config), (UnusedNames{"num_class_images", "min_bucket_reso", "unmasked_weight", "huber_c",
                                                 "ema_decay", "lr_num_cycles", "lr_power", "num_train_epochs"}));
}

// Betas of AdamW beside Lion, say: a run that learns otherwise than the one they were found with.
TEST(OptionWarnings, NameOptionsOfOtherOptimizers) {
  TrainConfig config;
  config.optim.adam_beta1 = 0.95;
  config.optim.adam_epsilon = 1e-6;
  config.optim.lion_beta2 = 0.98;
  config.optim.prodigy_beta3 = 0.9;
  config.optim.prodigy_safeguard_warmup = false;
  for (const Field& field : config.fields()) config.origins[field.info.name] = "--" + field.info.name;
  const UnusedNames of_lion{"lion_beta2"}, of_prodigy{"prodigy_beta3", "prodigy_safeguard_warmup"};
  const UnusedNames of_both{"lion_beta2", "prodigy_beta3", "prodigy_safeguard_warmup"};
  EXPECT_EQ(unused_options(config), of_both);
  config.optim.use_8bit_adam = true;
  EXPECT_EQ(unused_options(config), of_both);
  config.optim.use_8bit_adam = false;
  config.optim.optimizer = "lion";
  EXPECT_EQ(unused_options(config),
            (UnusedNames{"adam_beta1", "adam_epsilon", "prodigy_beta3", "prodigy_safeguard_warmup"}));
  config.optim.optimizer = "prodigy";
  EXPECT_EQ(unused_options(config), of_lion);
  config.optim = OptimOptions();
  config.optim.optimizer = "adafactor";
  config.optim.adam_beta2 = 0.99;
  ASSERT_EQ(unused_options(config), (UnusedNames{"adam_beta2"}));
  EXPECT_EQ(option_warnings(config).front().line(),
            "adam_beta2: has no effect unless optimizer is adamw, adamw_8bit or prodigy (got 0.99)");
}

TEST(OptionWarnings, NameWhatValidatesNothing) {
  TrainConfig config;
  config.observe.validation_negative_prompt = "blurry";
  config.observe.validation_steps = 7;
  for (const Field& field : config.fields()) config.origins[field.info.name] = "--" + field.info.name;
  EXPECT_EQ(unused_options(config), (UnusedNames{"validation_negative_prompt", "validation_steps"}));
  config.observe.validation_data_dir = "held_out";
  EXPECT_EQ(unused_options(config), (UnusedNames{"validation_negative_prompt"}));
  config.observe.validation_prompt = "a photo";
  EXPECT_EQ(unused_options(config), UnusedNames());
}

// A preset's values are no mistake, and a flag may switch off what a file has options for.
TEST(OptionWarnings, AreOfWhatTheUserMeant) {
  TrainConfig config;
  config.data.num_class_images = 200;
  config.preset = "configs/lora_sd15.yaml";
  config.origins = {{"num_class_images", "configs/lora_sd15.yaml:16"}};
  EXPECT_EQ(unused_options(config), UnusedNames());
  config.origins = {{"num_class_images", "me.yaml:16"}, {"with_prior_preservation", "--with-prior-preservation"}};
  EXPECT_EQ(unused_options(config), UnusedNames());
  config.origins["num_class_images"] = "--num-class-images";
  EXPECT_EQ(unused_options(config), (UnusedNames{"num_class_images"}));
}

TEST(OptionWarnings, AreOfFoldersThatAreThePhotosToo) {
  const test::ScratchFolder folder;
  TrainConfig config;
  config.data.images = config.data.class_data_dir = folder.path().string();
  config.run.output = (folder.path() / "run").string();
  EXPECT_EQ(unused_options(config), UnusedNames());
  config.data.with_prior_preservation = true;
  EXPECT_EQ(unused_options(config), (UnusedNames{"class_data_dir"}));
  config.run.output = folder.path().string() + "/";
  EXPECT_EQ(unused_options(config), (UnusedNames{"class_data_dir", "output"}));
}

}  // namespace
}  // namespace sdtune::train
