#include "train/config/load_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "train/config/preset.h"

namespace sdtune::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class LoadConfig : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("sdtune_load_config_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  LoadedConfig load_text(const std::string& yaml) { return load_train_config(write("me.yaml", yaml), {}); }

  std::filesystem::path folder_;
};

Setting flag(const std::string& name, const std::string& value) {
  return {name, {value}, false, false, flag_name(name)};
}

TEST_F(LoadConfig, FlagsWinOverFileAndFileOverBaseAndBaseOverDefaults) {
  write("base/sdtune_defaults.yaml", "learning_rate: 3.0e-4\ntrain_batch_size: 7\nnum_class_images: 9\n");
  const auto file =
      write("me.yaml", "learning-rate: 2.0e-4\nbase: " + (folder_ / "base").string() + "\ntrain_batch_size: 5\n");
  const LoadedConfig loaded = load_train_config(file, {flag("learning_rate", "1e-4")});
  EXPECT_THAT(loaded.problems, IsEmpty());
  EXPECT_EQ(loaded.config.optim.learning_rate, 1e-4);
  EXPECT_EQ(loaded.config.run.train_batch_size, 5);
  EXPECT_EQ(loaded.config.data.num_class_images, 9);
  EXPECT_EQ(loaded.config.run.gradient_accumulation_steps, TrainConfig().run.gradient_accumulation_steps);
  const Origins& origins = loaded.config.origins;
  EXPECT_EQ(origins.at("learning_rate"), "--learning-rate");
  EXPECT_EQ(origins.at("train_batch_size"), file.string() + ":3");
  EXPECT_EQ(origins.at("num_class_images"), (folder_ / "base/sdtune_defaults.yaml").string() + ":3");
  EXPECT_EQ(origins.count("gradient_accumulation_steps"), 0u);
}

// A folder from elsewhere must not have commands run, or runs deleted.
TEST_F(LoadConfig, AModelSaysHowToTrainAndNothingElse) {
  const auto file = write("base/sdtune_defaults.yaml",
                          "learning_rate: 3.0e-4\non-finish: echo owned\noutput_dir: elsewhere\noverwrite: true\n"
                          "report_to: [wandb]\nnotify: https://example.org\n");
  const LoadedConfig loaded = load_train_config("", {flag("base", (folder_ / "base").string())});
  ASSERT_THAT(loaded.problems, SizeIs(5));
  for (const Problem& problem : loaded.problems) {
    EXPECT_THAT(problem.where, StartsWith(file.string() + ":"));
    EXPECT_THAT(problem.what, HasSubstr("is not for the defaults of a model to say"));
    EXPECT_EQ(problem.line().find("example.org"), std::string::npos);  // a secret
  }
  EXPECT_EQ(loaded.config.rental.on_finish, "");
  EXPECT_EQ(loaded.config.rental.notify, "");
  EXPECT_EQ(loaded.config.run.output, "");
  EXPECT_FALSE(loaded.config.run.overwrite);
  EXPECT_EQ(loaded.config.optim.learning_rate, 3e-4);
  const LoadedConfig own = load_text("on_finish: echo\noutput: here\n");
  EXPECT_THAT(own.problems, IsEmpty());
  EXPECT_EQ(own.config.rental.on_finish, "echo");
}

TEST_F(LoadConfig, APresetsLineCommandsNoTerminal) {
  write("b\x1b[2J/sdtune_defaults.yaml", "seed: 1\n");
  const LoadedConfig loaded = load_train_config("", {flag("base", (folder_ / "b\x1b[2J").string())});
  EXPECT_EQ(preset_line(loaded.config), "b\\x1b[2J/sdtune_defaults.yaml: seed 1");
}

TEST_F(LoadConfig, LeavesTheRateToProdigyUnlessTheUserSaysOne) {
  write("base/sdtune_defaults.yaml", "learning_rate: 3.0e-4\ntext-encoder-lr: 2.0e-4\nnum_class_images: 9\n");
  const std::string base = "base: " + (folder_ / "base").string() + "\noptimizer: prodigy\n";
  const LoadedConfig found = load_text(base);
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_EQ(found.config.optim.learning_rate, 1);
  EXPECT_FALSE(found.config.optim.text_encoder_lr);
  EXPECT_EQ(found.config.data.num_class_images, 9);
  EXPECT_EQ(found.config.origins.at("learning_rate"), "optimizer: prodigy");
  EXPECT_EQ(load_text(base + "learning_rate: 0.5\n").config.optim.learning_rate, 0.5);
}

TEST_F(LoadConfig, CenterCropReplacesAnEarlierCropStyle) {
  write("base/sdtune_defaults.yaml", "crop-style: face\nnum_class_images: 9\n");
  const Setting base = flag("base", (folder_ / "base").string());
  const auto crop = [&](const std::string& yaml, const std::vector<Setting>& more) {
    std::vector<Setting> flags = {base};
    flags.insert(flags.end(), more.begin(), more.end());
    const LoadedConfig loaded = load_train_config(write("me.yaml", yaml), flags);
    EXPECT_THAT(loaded.problems, IsEmpty());
    EXPECT_EQ(loaded.config.data.num_class_images, 9);
    return loaded.config.data.crop();
  };
  EXPECT_EQ(crop("", {}), "face");
  EXPECT_EQ(crop("", {flag("center_crop", "true")}), "center");
  EXPECT_EQ(crop("", {flag("center-crop", "false")}), "random");
  EXPECT_EQ(crop("center_crop: false\n", {}), "random");
  EXPECT_EQ(crop("crop_style: face\n", {flag("center_crop", "true")}), "center");
  // Given in one place, crop_style says more than center_crop.
  EXPECT_EQ(crop("center_crop: true\ncrop_style: face\n", {}), "face");
  EXPECT_EQ(crop("", {flag("center_crop", "true"), flag("crop_style", "face")}), "face");
  EXPECT_EQ(crop("center_crop: true\n", {flag("crop_style", "face")}), "face");
}

TEST_F(LoadConfig, AnOptimizerReplacesAnEarlierUse8bitAdam) {
  const auto optimizer = [](const std::filesystem::path& file, const std::vector<Setting>& flags) {
    const LoadedConfig loaded = load_train_config(file, flags);
    EXPECT_THAT(loaded.problems, IsEmpty());
    return loaded.config.optim.chosen_optimizer();
  };
  EXPECT_EQ(optimizer("full_sd15_16gb.yaml", {}), "adamw_8bit");
  EXPECT_EQ(optimizer("full_sd15_16gb.yaml", {flag("optimizer", "adamw")}), "adamw");
  const auto file = write("me.yaml", "optimizer: adamw\nuse-8bit-adam: true\n");
  EXPECT_EQ(optimizer(file, {}), "adamw_8bit");
  EXPECT_EQ(optimizer(file, {flag("optimizer_type", "adafactor")}), "adafactor");
  EXPECT_EQ(optimizer(file, {flag("optimizer", "adamw"), flag("use_8bit_adam", "true")}), "adamw_8bit");
  EXPECT_EQ(load_train_config(file, {flag("optimizer", "prodigy")}).config.optim.learning_rate, 1);
}

TEST_F(LoadConfig, EpochsOfAFlagReplaceEarlierSteps) {
  write("base/sdtune_defaults.yaml", "max_train_steps: 300\n");
  const auto steps = [&](const std::string& yaml, std::vector<Setting> flags) {
    flags.push_back(flag("base", (folder_ / "base").string()));
    const LoadedConfig loaded = load_train_config(write("me.yaml", yaml), flags);
    EXPECT_THAT(loaded.problems, IsEmpty());
    return loaded.config.run.max_train_steps;
  };
  const Setting epochs = flag("num_train_epochs", "3");
  EXPECT_EQ(steps("max_train_steps: 400\n", {}), 400);
  EXPECT_EQ(steps("max_train_steps: 400\n", {epochs}), std::nullopt);
  EXPECT_EQ(steps("max-train-steps: 400\n", {epochs}), std::nullopt);
  EXPECT_EQ(steps("num_train_epochs: 5\n", {}), std::nullopt);
  // Given in one place, steps say more than epochs.
  EXPECT_EQ(steps("max_train_steps: 400\nnum_train_epochs: 5\n", {}), 400);
  EXPECT_EQ(steps("max_train_steps: 400\n", {epochs, flag("max_train_steps", "7")}), 7);
  EXPECT_EQ(steps("num_train_epochs: 5\n", {flag("max_train_steps", "7")}), 7);
  EXPECT_EQ(steps("max_train_steps: 400\n", {flag("num_train_epochs", "none")}), 400);
}

TEST_F(LoadConfig, TakesDiffusersNames) {
  const LoadedConfig loaded = load_text("instance_data_dir: a\noutput-dir: b\npretrained_model_name_or_path: c\n");
  EXPECT_THAT(loaded.problems, IsEmpty());
  EXPECT_EQ(loaded.config.data.images, "a");
  EXPECT_EQ(loaded.config.run.output, "b");
  EXPECT_EQ(loaded.config.run.base, "c");
}

TEST_F(LoadConfig, PresetComesWithTheFamily) {
  write("sd/model_index.json", R"({"_class_name": "StableDiffusionPipeline"})");
  write("sd/unet/config.json", R"({"block_out_channels": [320, 640], "cross_attention_dim": 768})");
  const LoadedConfig loaded = load_train_config("", {flag("base", (folder_ / "sd").string())});
  EXPECT_THAT(loaded.problems, IsEmpty());
  EXPECT_THAT(loaded.config.origins.at("learning_rate"), HasSubstr("full_sd15.yaml:"));
  EXPECT_EQ(loaded.config.optim.learning_rate, 2e-6);
  const LoadedConfig lora = load_train_config("", {flag("base", (folder_ / "sd").string()), flag("method", "lora")});
  EXPECT_THAT(lora.config.origins.at("learning_rate"), HasSubstr("lora_sd15.yaml:"));
  write("sd/unet/config.json", R"({"block_out_channels": [32, 64], "cross_attention_dim": 768})");
  EXPECT_EQ(load_train_config("", {flag("base", (folder_ / "sd").string())}).config.origins.count("learning_rate"), 0u);
}

// Full training's rate would teach a LoRA nothing, so the defaults of a base are by method.
TEST_F(LoadConfig, ALoraHasDefaultsOfItsOwn) {
  write("base/sdtune_defaults.yaml", "learning_rate: 3.0e-4\n");
  const Setting base = flag("base", (folder_ / "base").string()), method = flag("method", "lora");
  EXPECT_THAT(load_train_config("", {base, method}).config.origins.at("learning_rate"), HasSubstr("/lora.yaml:"));
  write("base/sdtune_defaults_lora.yaml", "learning_rate: 7.0e-4\n");
  EXPECT_EQ(load_train_config("", {base, method}).config.optim.learning_rate, 7e-4);
  EXPECT_EQ(load_train_config("", {base}).config.optim.learning_rate, 3e-4);
}

TEST_F(LoadConfig, RunConfigReadsBackToTheSameValues) {
  LoadedConfig loaded = load_text(
      "instance_prompt: \"a photo: 'sks' \\\"person\\\" # é\"\nlearning_rate: 1.2345678901234567e-6\nmax_train_steps: "
      "none\n");
  ASSERT_THAT(loaded.problems, IsEmpty());
  const std::string text = config_to_yaml(loaded.config.fields(), loaded.config.origins);
  EXPECT_THAT(text, HasSubstr("learning_rate: 1.2345678901234567e-06  # " + (folder_ / "me.yaml").string() + ":2\n"));
  EXPECT_THAT(text, HasSubstr("gradient_accumulation_steps: 1  # default\n"));
  LoadedConfig again = load_text(text);
  ASSERT_THAT(again.problems, IsEmpty()) << text;
  const FieldList before = loaded.config.fields();
  const FieldList after = again.config.fields();
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(field_text(before[i]), field_text(after[i]));
}

// A comment that a name of two lines ends early, or that is no UTF-8, would make the file none of YAML.
TEST_F(LoadConfig, AFilesNameCannotSpoilTheRunConfig) {
  const LoadedConfig loaded = load_train_config(write("a\nseed: 7\xff.yaml", "seed: 5\n"), {});
  ASSERT_THAT(loaded.problems, IsEmpty());
  TrainConfig config = loaded.config;
  const LoadedConfig again = load_text(config_to_yaml(config.fields(), config.origins));
  ASSERT_THAT(again.problems, IsEmpty());
  EXPECT_EQ(again.config.run.seed, 5);
}

TEST_F(LoadConfig, ReportsAllAtOnceAndKeepsTheRest) {
  const LoadedConfig loaded =
      load_train_config(write("me.yaml", "learning_rat: 1\nresolution: big\nseed: 5\nlr_scheduler: cosin\n"),
                        {flag("max_train_steps", "-3"), flag("imagse", "x")});
  EXPECT_EQ(loaded.config.run.seed, 5);
  ASSERT_THAT(loaded.problems, SizeIs(5));
  EXPECT_THAT(loaded.problems[0].line(),
              AllOf(HasSubstr("me.yaml:1: unknown key learning_rat"), HasSubstr("learning_rate?")));
  EXPECT_THAT(loaded.problems[1].line(), HasSubstr("me.yaml:2: resolution must be an integer (got big"));
  EXPECT_THAT(loaded.problems[2].line(), HasSubstr("nearest is cosine"));
  EXPECT_THAT(loaded.problems[3].line(), StartsWith("--max-train-steps: is out of range (got -3"));
  EXPECT_THAT(loaded.problems[4].line(), StartsWith("--imagse: unknown option; did you mean --images?"));
}

// One bad file each: what is said must hold the key (or line) and the cause. reliability_and_cloud.md, row D7.
struct BadConfig {
  const char* yaml;
  const char* place;
  const char* cause;
};

constexpr BadConfig kBadConfigs[] = {
    {"learning_rat: 1e-4\n", "me.yaml:1", "did you mean learning_rate?"},
    {"Learning_rate: 1e-4\n", "me.yaml:1", "did you mean learning_rate?"},
    {"resolutoin: 64\n", "me.yaml:1", "did you mean resolution?"},
    {"instance_promt: a\n", "me.yaml:1", "did you mean instance_prompt?"},
    {"banana: 1\n", "me.yaml:1", "unknown key banana"},
    {"<<: {seed: 1}\n", "me.yaml:1", "is a mapping"},
    {"fsdp: true\n", "me.yaml:1", "not supported"},
    {"deepspeed: zero2\n", "me.yaml:1", "not supported"},
    {"async: true\n", "me.yaml:1", "not supported"},
    {"push_to_hub: true\n", "me.yaml:1", "sdtune push sends a finished model to a hub"},
    {"local-rank: 0\n", "me.yaml:1", "ranks are read from the environment"},
    {"mixed_precision: fp8\n", "mixed_precision", "one of"},
    {"mixed_precision: float16\n", "mixed_precision", "one of"},
    {"lr_scheduler: cosin\n", "lr_scheduler", "nearest is cosine"},
    {"lr_scheduler: sawtooth\n", "lr_scheduler", "one of"},
    {"method: dora\n", "method", "one of full, lora"},
    {"seed: one\n", "seed", "must be an integer"},
    {"seed: 1.5\n", "seed", "must be an integer"},
    {"seed: -1\n", "seed", "out of range"},
    {"seed: 9223372036854775808\n", "seed", "does not fit into 64 bits"},
    {"seed: 1e3\n", "seed", "must be an integer"},
    {"seed: [1, 2]\n", "seed", "takes one value"},
    {"seed: {a: 1}\n", "seed", "is a mapping"},
    {"seed:\n", "seed", "has no value"},
    {"lora_layers: [{images: a}]\n", "lora_layers", "is a list of mappings"},
    {"images:\n", "images", "has no value"},
    {"images: [a, [b]]\n", "images", "a list of something other"},
    {"learning_rate: -1e-4\n", "learning_rate", "out of range"},
    {"learning_rate: .nan\n", "learning_rate", "must be a number"},
    {"learning_rate: nan\n", "learning_rate", "must be finite"},
    {"learning_rate: inf\n", "learning_rate", "must be finite"},
    {"learning_rate: -.inf\n", "learning_rate", "must be a number"},
    {"learning_rate: 1e999\n", "learning_rate", "does not fit"},
    {"learning_rate: fast\n", "learning_rate", "must be a number"},
    {"learning_rate: 1,5\n", "learning_rate", "must be a number"},
    {"train_text_encoder: maybe\n", "train_text_encoder", "true or false"},
    {"train_text_encoder: 2\n", "train_text_encoder", "true or false"},
    {"train_batch_size: 0\n", "train_batch_size", "out of range"},
    {"gradient_accumulation_steps: 0\n", "gradient_accumulation_steps", "out of range"},
    {"max_train_steps: 0\n", "max_train_steps", "out of range"},
    {"prior_loss_weight: -1\n", "prior_loss_weight", "out of range"},
    {"adam_beta1: 1\n", "adam_beta1", "out of range"},
    {"adam_epsilon: 0\n", "adam_epsilon", "out of range"},
    {"checkpointing_steps: -5\n", "checkpointing_steps", "out of range"},
    {"seed: 1\nseed: 2\n", "me.yaml:2", "given twice"},
    {"images: a\ninstance_data_dir: b\n", "me.yaml:2", "are the same option"},
    {"learning_rate: 1e-4\nlearning-rate: 2e-4\n", "me.yaml:2", "are the same option"},
    {"a: &x [1]\nb: [*x, *x]\n", "me.yaml:1", "anchors and aliases"},
    {"seed:\n\t1\n", "me.yaml:2", "indented with a tab"},
    {"\xEF\xBB\xBFseed: 1\n", "me.yaml:1", "byte order mark"},
    {"seed: !!python/object/apply:os.system [ls]\n", "me.yaml:1", "tags are not allowed"},
    {"- seed\n- 1\n", "me.yaml:1", "KEY: VALUE"},
    {"just words\n", "me.yaml:1", "KEY: VALUE"},
    {"seed: [1, 2\n", "me.yaml:", "is not YAML"},
    {"seed: 'open\n", "me.yaml:1", "quote is not closed"},
    {"seed: 1\n---\nseed: 2\n", "me.yaml", "more than one document"},
    {"seed: \xFF\n", "me.yaml:1", "is not UTF-8"},
    {"seed: 1\x01\n", "me.yaml:1", "control character"},
    {"seed: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n", "me.yaml:1",
     "nested deeper"},
};
static_assert(std::size(kBadConfigs) >= 40);

TEST_F(LoadConfig, EachBadFileIsOneLineWithKeyAndCause) {
  for (const BadConfig& bad : kBadConfigs) {
    const LoadedConfig loaded = load_text(bad.yaml);
    ASSERT_THAT(loaded.problems, SizeIs(1)) << bad.yaml;
    const std::string line = loaded.problems.front().line();
    EXPECT_THAT(line, AllOf(HasSubstr(bad.place), HasSubstr(bad.cause), HasSubstr("me.yaml"))) << bad.yaml;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
}

TEST_F(LoadConfig, ListOfMappingsBecomesJson) {
  for (const char* name : {"concepts", "concepts_list"}) {
    const LoadedConfig loaded = load_text(std::string(name) + ":\n  - {images: a, repeats: 2}\n  - images: b\n");
    ASSERT_THAT(loaded.problems, IsEmpty());
    EXPECT_EQ(loaded.config.data.concepts,
              (std::vector<std::string>{R"({"images":"a","repeats":"2"})", R"({"images":"b"})"}));
  }
}

TEST_F(LoadConfig, ListsWhatThePresetSetAndNothingOverrode) {
  write("base/sdtune_defaults.yaml", "use_ema: true\nlearning_rate: 3.0e-4\nnum-class-images: 9\n");
  const Setting base = flag("base", (folder_ / "base").string());
  EXPECT_EQ(preset_line(load_train_config("", {base}).config),
            "base/sdtune_defaults.yaml: num_class_images 9, learning_rate 3.0e-04, use_ema true");
  const LoadedConfig changed =
      load_train_config(write("me.yaml", "num_class_images: 9\n"), {base, flag("use_ema", "no")});
  EXPECT_EQ(preset_line(changed.config), "base/sdtune_defaults.yaml: learning_rate 3.0e-04");
  EXPECT_EQ(preset_line(load_train_config("", {flag("base", "nowhere")}).config), "");
}

TEST(Presets, AreListedWithTheirValues) {
  const std::vector<Preset> presets = installed_presets();
  ASSERT_THAT(presets, SizeIs(11));
  EXPECT_EQ(presets.front().file, "full_portrait-128.yaml");
  EXPECT_EQ(presets.back().file, "lora.yaml");
  EXPECT_EQ(presets.back().applies_to, "--method lora, any other base");
  ASSERT_NE(presets.back().value_of("learning_rate"), nullptr);
  EXPECT_EQ(*presets.back().value_of("learning_rate"), "5.0e-04");
  EXPECT_EQ(presets.back().value_of("seed"), nullptr);
}

TEST_F(LoadConfig, FileThatIsAbsent) {
  const LoadedConfig loaded = load_train_config(folder_ / "none.yaml", {});
  ASSERT_THAT(loaded.problems, SizeIs(1));
  EXPECT_THAT(loaded.problems.front().line(), HasSubstr("none.yaml: cannot be read"));
}

// Names are read in both spellings and by one rule, so two fields must never answer to one name.
TEST(TrainConfigFields, NamesAreUniqueAndExplained) {
  TrainConfig config;
  const FieldList fields = config.fields();
  for (const Field& field : fields) {
    EXPECT_EQ(find_field(fields, field.info.name), &field) << field.info.name;
    for (const std::string& alias : field.info.aliases) EXPECT_EQ(find_field(fields, alias), &field) << alias;
    EXPECT_FALSE(field.info.help.empty()) << field.info.name;
    EXPECT_FALSE(field.info.group.empty()) << field.info.name;
    const std::string before = field_text(field);
    if (!is_list(field) && before != "\"\"") {
      EXPECT_NO_THROW(
          set_field(field, before.front() == '"' ? before.substr(1, before.size() - 2) : before, "default"));
    }
  }
}

}  // namespace
}  // namespace sdtune::train
