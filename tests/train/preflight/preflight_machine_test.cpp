#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "train/preflight/preflight_checks.h"

namespace sdtune::train {
namespace {

std::vector<std::string> contradicting_options(const TrainConfig& config) {
  std::vector<Problem> problems;
  check_contradictions(config, problems);
  std::vector<std::string> names;
  for (const Problem& problem : problems) names.push_back(problem.where);
  return names;
}

using OptionNames = std::vector<std::string>;

// A full training would leave them unused, and say nothing of it.
TEST(LoraOptionsOfAFullTraining, AreRefusedWhereTheUserGaveThem) {
  TrainConfig config;
  config.lora.rank = 32;
  config.lora.lora_alpha = 8;
  EXPECT_EQ(contradicting_options(config), OptionNames()) << "not given by anyone";
  config.origins = {{"rank", "--rank"}, {"lora_alpha", "me.yaml:3"}, {"lora_dropout", "lora_dropout"}};
  EXPECT_EQ(contradicting_options(config), (OptionNames{"rank", "lora_alpha"})) << "lora_dropout has its default";
  config.origins["method"] = "me.yaml:1";
  EXPECT_EQ(contradicting_options(config), (OptionNames{"rank", "lora_alpha"}));
  config.origins["method"] = "--method";
  EXPECT_EQ(contradicting_options(config), (OptionNames{"rank"})) << "--method full replaces what a file says";
  config.checkpoint.resume_from_checkpoint = "latest";
  EXPECT_EQ(contradicting_options(config), OptionNames()) << "a run that began before this check";
  config.checkpoint.resume_from_checkpoint = "auto";
  EXPECT_EQ(contradicting_options(config), (OptionNames{"rank"}));
  config.run.method = "lora";
  EXPECT_EQ(contradicting_options(config), OptionNames());
}

TEST(LoraOptionsOfAFullTraining, MayBeOfThePreset) {
  TrainConfig config;
  config.lora.rank = 32;
  config.preset = "configs/lora_sd15.yaml";
  config.origins["rank"] = "configs/lora_sd15.yaml:7";
  EXPECT_EQ(contradicting_options(config), OptionNames());
}

}  // namespace
}  // namespace sdtune::train
