// What a run is expected to write, beside what is written.
#include "train/preflight/disk_space.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/lora/lora_file.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_bundle.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/optim/optimizer.h"
#include "train/parameters/lora_parameters.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;

std::int64_t size_of_files_in(const fs::path& folder) {
  std::int64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += static_cast<std::int64_t>(entry.file_size());
  }
  return bytes;
}

class DiskSpace : public testing::Test {
 protected:
  // So wide that the files' headers are a small part of them.
  DiskSpace() {
    Json unet = test::tiny_unet_config(8);
    unet["block_out_channels"] = {64, 64};
    bundle_.unet = model::UNet2DConditionModel(model::UNetConfig::from_json(unet, "unet"));
  }

  // Of a run that trains these.
  std::int64_t size_of_a_checkpoint(const std::vector<ModuleParameter>& trained) {
    std::vector<TrainedParameter> parameters;
    model::NamedTensors averages;
    for (const ModuleParameter& parameter : trained) {
      const torch::Tensor weight = parameter.weight.detach();
      parameters.push_back({parameter.name, weight, torch::zeros_like(weight), {}, parameter.rate_group});
      if (config_.optim.use_ema) averages.emplace_back(parameter.name, weight);
    }
    const std::unique_ptr<Optimizer> optimizer = make_optimizer(std::move(parameters), config_.optim);
    RunState state;
    state.step = ++step_;
    CheckpointWriter writer(real_file_system(), scratch_.path() / "checkpoints", std::nullopt);
    return size_of_files_in(writer.write(*optimizer, state, averages));
  }

  static std::int64_t numbers_of(const std::vector<ModuleParameter>& trained) {
    std::int64_t numbers = 0;
    for (const ModuleParameter& parameter : trained) numbers += parameter.weight.numel();
    return numbers;
  }
  // What the headers of the files, and small files, are allowed to take.
  static std::int64_t margin_of(const std::vector<ModuleParameter>& trained) {
    return (std::int64_t{64} << 10) + 1536 * static_cast<std::int64_t>(trained.size());
  }

  test::ScratchFolder scratch_;
  model::ModelBundle bundle_ = test::make_tiny_bundle(scratch_, false);
  TrainConfig config_;
  std::int64_t step_ = 0;
};

TEST_F(DiskSpace, OfACheckpointIsWhatEachOptimizerWrites) {
  const std::vector<ModuleParameter> trained = trainable_parameters(bundle_, false);
  for (const bool averages : {false, true}) {
    config_.optim.use_ema = averages;
    for (const char* name : {"adamw", "adamw_8bit", "adafactor", "lion", "prodigy"}) {
      if (averages && std::string(name) != "adamw") continue;
      config_.optim.optimizer = name;
      config_.optim.learning_rate = std::string(name) == "prodigy" ? 1 : 1e-4;  // which it multiplies by its own
      const std::int64_t expected = written_bytes(config_, bundle_).checkpoint;
      const std::int64_t written = size_of_a_checkpoint(trained);
      EXPECT_GE(expected, written) << name;
      EXPECT_LE(expected, written + margin_of(trained)) << name;
      // The mutant: float32 masters and two moments, whatever the optimizer.
      const std::int64_t mutant = 12 * numbers_of(trained);
      const bool is_right = mutant >= written - margin_of(trained) && mutant <= written + margin_of(trained);
      EXPECT_EQ(is_right, std::string(name) == "adamw" && !averages) << name;
    }
  }
}

TEST_F(DiskSpace, OfATrainingOfSomeLayersIsThatOfThese) {
  config_.run.trainable_layers = {"to_q"};
  const std::vector<ModuleParameter> trained = trainable_parameters(bundle_, false, {"to_q"});
  const WrittenBytes expected = written_bytes(config_, bundle_);
  const std::int64_t written = size_of_a_checkpoint(trained);
  EXPECT_GE(expected.checkpoint, written);
  EXPECT_LE(expected.checkpoint, written + margin_of(trained));
  config_.run.trainable_layers.clear();
  EXPECT_LT(expected.checkpoint, written_bytes(config_, bundle_).checkpoint / 4);
  EXPECT_EQ(expected.model, written_bytes(config_, bundle_).model) << "the whole of it is exported";
  EXPECT_EQ(expected.best, 0);
  config_.run.trainable_layers = {"no_such_layer"};
  EXPECT_THROW(written_bytes(config_, bundle_), ConfigError);
}

TEST_F(DiskSpace, OfAModelIsWhatIsExported) {
  const WrittenBytes expected = written_bytes(config_, bundle_);
  model::save_bundle(real_file_system(), bundle_, scratch_.path() / "model", torch::kFloat32);
  const std::int64_t written = size_of_files_in(scratch_.path() / "model");
  EXPECT_GE(expected.model, written);
  EXPECT_LE(expected.model, written + written / 10);
  // The mutant: half precision.
  EXPECT_GT(written, 2 * count_parameters(bundle_) + written / 10);
}

TEST_F(DiskSpace, OfALoraIsItsOwn) {
  config_.run.method = "lora";
  config_.lora.rank = 64;
  config_.identity.identity_steps = 10;
  const WrittenBytes expected = written_bytes(config_, bundle_);
  const std::vector<ModuleParameter> trained = add_lora(bundle_, config_.lora, false, 0, nullptr);
  const std::int64_t checkpoint = size_of_a_checkpoint(trained);
  EXPECT_GE(expected.checkpoint, checkpoint);
  EXPECT_LE(expected.checkpoint, checkpoint + margin_of(trained));
  EXPECT_GE(expected.best, 2 * 4 * numbers_of(trained));
  EXPECT_LE(expected.best, 2 * (4 * numbers_of(trained) + margin_of(trained)));
  model::LoraWeights weights;
  for (const ModuleParameter& parameter : trained) {
    const std::size_t end = parameter.name.rfind(".lora_");
    model::LoraMatrices& matrices = weights[parameter.name.substr(0, end)];
    (parameter.name.ends_with(".lora_A.weight") ? matrices.down : matrices.up) = parameter.weight;
    matrices.alpha = 64;
  }
  const fs::path folder = scratch_.path() / "model";
  fs::create_directories(folder);
  for (const model::LoraStyle style : {model::LoraStyle::kDiffusers, model::LoraStyle::kKohya}) {
    const std::string file = style == model::LoraStyle::kKohya ? "run.safetensors" : model::kLoraFile;
    model::write_lora(real_file_system(), folder / file, bundle_, weights, style);
  }
  const std::int64_t written = size_of_files_in(folder);
  EXPECT_GE(expected.model, written);
  EXPECT_LE(expected.model, written + margin_of(trained));
  // The mutant: the base with it.
  EXPECT_GT(4 * count_parameters(bundle_), written + margin_of(trained));
}

}  // namespace
}  // namespace sdtune::train
