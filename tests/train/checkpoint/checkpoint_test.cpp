#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "model/files/manifest.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/scratch_folder.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/checkpoint/checkpoint_writer.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;
using test::Fault;
using test::FaultyFileSystem;
using test::ScratchFolder;
using ::testing::HasSubstr;

// An optimizer whose weights tell which step they are of.
std::unique_ptr<Optimizer> optimizer_at(double value) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor first = torch::full({3, 2}, value);
  const torch::Tensor second = torch::full({5}, -value);
  auto optimizer = make_optimizer(
      {{"unet.a", first, torch::ones_like(first), {}, 0}, {"unet.b", second, torch::ones({5}), {}, 0}}, OptimOptions());
  for (const auto& [name, state] : optimizer->states()) state.fill_(name.ends_with("_sq") ? value / 4 : value / 2);
  return optimizer;
}

RunState state_at(std::int64_t step) {
  RunState state;
  state.step = step;
  state.updates = step - 1;
  state.effective_batch = 4;
  state.implementation = model::CpuImplementation{false, true, false, true, false, true};
  state.scaler = {512.0, 3};
  state.fingerprint = {{{"seed", "0"}}, {{"00.jpg", "abc"}}, "base"};
  return state;
}

// Loads what `latest` gives and checks that it is one step's, whole.
std::int64_t loaded_step(const fs::path& checkpoints) {
  const FoundCheckpoint found = find_checkpoint("latest", checkpoints);
  const RunState state = read_run_state(*found.path);
  const std::unique_ptr<Optimizer> optimizer = optimizer_at(0);
  load_optimizer(*found.path, state, *optimizer);
  const auto value = static_cast<float>(state.step);
  EXPECT_TRUE(optimizer->parameters()[0].weight.equal(torch::full({3, 2}, value)));
  EXPECT_TRUE(optimizer->parameters()[1].weight.equal(torch::full({5}, -value)));
  const NamedStates states = optimizer->states();
  EXPECT_TRUE(states.at(2).second.equal(torch::full({5}, value / 2)));
  EXPECT_TRUE(states.at(3).second.equal(torch::full({5}, value / 4)));
  EXPECT_EQ(optimizer->updates().item<std::int64_t>(), state.step - 1);
  return state.step;
}

fs::path write_step(FileSystem& files, const fs::path& checkpoints, std::int64_t step,
                    std::optional<std::int64_t> limit = std::nullopt) {
  const std::unique_ptr<Optimizer> optimizer = optimizer_at(static_cast<double>(step));
  return CheckpointWriter(files, checkpoints, limit).write(*optimizer, state_at(step));
}

TEST(Checkpoint, GivesBackWhatWasWritten) {
  const ScratchFolder scratch;
  const fs::path path = write_step(real_file_system(), scratch.path(), 10);
  EXPECT_EQ(path.filename(), "step-00000010");
  EXPECT_EQ(loaded_step(scratch.path()), 10);
  const RunState state = read_run_state(path);
  EXPECT_EQ(state.scaler.scale, 512.0);
  EXPECT_EQ(state.effective_batch, 4);
  EXPECT_EQ(state.fingerprint, state_at(10).fingerprint);
}

TEST(Checkpoint, SurvivesAKillAndAFailureAtEveryFileOperation) {
  std::size_t operations = 0;
  {
    const ScratchFolder scratch;
    write_step(real_file_system(), scratch.path(), 10);
    FaultyFileSystem counting;
    write_step(counting, scratch.path(), 20, 1);
    operations = counting.operations();
  }
  ASSERT_GT(operations, 20u);
  for (const Fault fault :
       {Fault::kFailOnce, Fault::kFailOnward, Fault::kKillBefore, Fault::kKillInside, Fault::kKillAfter}) {
    for (std::size_t at = 0; at < operations; ++at) {
      const ScratchFolder scratch;
      write_step(real_file_system(), scratch.path(), 10);
      FaultyFileSystem faulty(fault, at);
      try {
        write_step(faulty, scratch.path(), 20, 1);
      } catch (const StorageError&) {
      } catch (const test::SimulatedKill&) {
      }
      const std::int64_t step = loaded_step(scratch.path());
      EXPECT_TRUE(step == 10 || step == 20) << "fault " << static_cast<int>(fault) << " at operation " << at;
      if (fault == Fault::kFailOnce && step == 10) {
        EXPECT_THAT(list_unfinished(scratch.path()), ::testing::IsEmpty()) << "half a checkpoint, operation " << at;
      }
      write_step(real_file_system(), scratch.path(), 20, 1);
      EXPECT_EQ(loaded_step(scratch.path()), 20);
    }
  }
}

// Every way to damage a file must be found, and the older checkpoint taken with a warning that names it.
void damage_and_expect(const std::function<void(const fs::path&)>& damage, const std::string& named) {
  const ScratchFolder scratch;
  write_step(real_file_system(), scratch.path(), 10);
  const fs::path newest = write_step(real_file_system(), scratch.path(), 20);
  damage(newest);
  const FoundCheckpoint found = find_checkpoint("latest", scratch.path());
  ASSERT_TRUE(found.path);
  EXPECT_EQ(found.path->filename(), "step-00000010");
  ASSERT_FALSE(found.warnings.empty());
  EXPECT_THAT(found.warnings.front().line(), HasSubstr(named));
  EXPECT_THROW(find_checkpoint(newest.string(), scratch.path()), CheckpointError);
}

TEST(Checkpoint, FindsDamage) {
  for (const char* name : {kWeightsFile, kOptimizerFile, kStateFile}) {
    damage_and_expect([&](const fs::path& folder) { fs::resize_file(folder / name, fs::file_size(folder / name) - 1); },
                      name);
    damage_and_expect([&](const fs::path& folder) { fs::remove(folder / name); }, name);
    damage_and_expect(
        [&](const fs::path& folder) {
          std::fstream file(folder / name, std::ios::in | std::ios::out | std::ios::binary);
          file.seekg(-3, std::ios::end);
          const auto flipped = static_cast<char>(file.peek() ^ 1);
          file.seekp(-3, std::ios::end);
          file.put(flipped);
        },
        name);
  }
  damage_and_expect([](const fs::path& folder) { fs::remove(folder / kManifestName); }, "manifest");
  damage_and_expect([](const fs::path& folder) { fs::resize_file(folder / kManifestName, 10); }, "manifest");
}

TEST(Checkpoint, NeverStartsFreshOverDamage) {
  const ScratchFolder scratch;
  const fs::path path = write_step(real_file_system(), scratch.path(), 10);
  fs::remove(path / kStateFile);
  EXPECT_THROW(find_checkpoint("latest", scratch.path()), CheckpointError);
  EXPECT_THROW(find_checkpoint("auto", scratch.path()), CheckpointError);
}

TEST(Checkpoint, OnlyAutoStartsFreshAndSaysSo) {
  const ScratchFolder scratch;
  EXPECT_THROW(find_checkpoint("latest", scratch.path()), CheckpointError);
  const FoundCheckpoint found = find_checkpoint("auto", scratch.path());
  EXPECT_FALSE(found.path);
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_THAT(found.warnings.front().line(), HasSubstr("starting fresh"));
}

// A run that is resumed from an older one has a different course from there on, and the next resume would leave it.
TEST(Checkpoint, WarnsOfNewerOnesThanTheChosen) {
  const ScratchFolder scratch, other;
  const fs::path older = write_step(real_file_system(), scratch.path(), 10);
  const fs::path newest = write_step(real_file_system(), scratch.path(), 20);
  const std::vector<Problem> warnings = find_checkpoint(older.string() + "/", scratch.path()).warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings.front().line(), HasSubstr(newest.string()));
  EXPECT_THAT(find_checkpoint(newest.string(), scratch.path()).warnings, ::testing::IsEmpty());
  EXPECT_THAT(find_checkpoint(older.string(), other.path()).warnings, ::testing::IsEmpty()) << "of another run";
}

TEST(Checkpoint, KeepsTheNewestOnly) {
  const ScratchFolder scratch;
  for (const std::int64_t step : {10, 20, 30}) write_step(real_file_system(), scratch.path(), step, 2);
  std::vector<std::int64_t> steps;
  for (const CheckpointFolder& checkpoint : list_checkpoints(scratch.path())) steps.push_back(checkpoint.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{30, 20}));
}

// Does not remove a folder of that name, as NFS while another program reads a file in it.
class KeepingFileSystem : public FaultyFileSystem {
 public:
  explicit KeepingFileSystem(std::string name) : name_(std::move(name)) {}
  void remove_tree(const fs::path& path) override {
    if (path.filename() == name_) throw StorageError(path.string(), "cannot remove: Directory not empty");
    FaultyFileSystem::remove_tree(path);
  }

 private:
  std::string name_;
};

TEST(Checkpoint, IsWrittenThoughAnOldOneCannotBeRemoved) {
  const ScratchFolder scratch;
  for (const std::int64_t step : {10, 20}) write_step(real_file_system(), scratch.path(), step);
  KeepingFileSystem files("step-00000020");
  CheckpointWriter writer(files, scratch.path(), 1);
  EXPECT_EQ(writer.write(*optimizer_at(30), state_at(30)).filename(), "step-00000030");
  EXPECT_EQ(loaded_step(scratch.path()), 30);
  EXPECT_FALSE(fs::exists(scratch.path() / "step-00000010")) << "those that can be removed are";
  const std::optional<Problem> warning = writer.take_warning();
  ASSERT_TRUE(warning);
  EXPECT_THAT(warning->line(), HasSubstr("step-00000020: cannot remove: Directory not empty"));
  writer.write(*optimizer_at(40), state_at(40));
  EXPECT_FALSE(writer.take_warning()) << "told once";
  EXPECT_THROW(find_checkpoint((scratch.path() / "step-00000020").string(), scratch.path()), CheckpointError);
}

TEST(Checkpoint, IsNotLoadedIntoAnotherOptimizer) {
  const ScratchFolder scratch;
  const fs::path path = write_step(real_file_system(), scratch.path(), 10);
  const torch::Tensor first = torch::zeros({3, 2}), second = torch::zeros({5});
  for (const char* name : {"lion", "adafactor", "prodigy"}) {
    OptimOptions options;
    options.optimizer = name;
    options.learning_rate = 1;
    const auto other = make_optimizer(
        {{"unet.a", first, torch::ones_like(first), {}, 0}, {"unet.b", second, torch::ones({5}), {}, 0}}, options);
    EXPECT_THROW(load_optimizer(path, read_run_state(path), *other), CheckpointError) << name;
  }
}

// What loading the checkpoint into an optimizer of these weights says; "" where it is loaded.
std::string load_refusal(const fs::path& path, const std::vector<std::pair<std::string, torch::Tensor>>& weights) {
  std::vector<TrainedParameter> parameters;
  for (const auto& [name, weight] : weights) parameters.push_back({name, weight, torch::ones_like(weight), {}, 0});
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(std::move(parameters), OptimOptions());
  try {
    load_optimizer(path, read_run_state(path), *optimizer);
  } catch (const CheckpointError& error) {
    return error.problems().front().line();
  }
  return "";
}

TEST(Checkpoint, IsNotLoadedIntoOtherParameters) {
  const ScratchFolder scratch;
  const fs::path path = write_step(real_file_system(), scratch.path(), 10);
  const torch::Tensor first = torch::zeros({3, 2}), second = torch::zeros({5});
  EXPECT_EQ(load_refusal(path, {{"unet.b", second}, {"unet.a", first}}), "") << "by name, in any order";
  EXPECT_TRUE(first.equal(torch::full({3, 2}, 10.0F)));
  EXPECT_TRUE(second.equal(torch::full({5}, -10.0F)));
  // Without the comparison LibTorch would copy the five numbers into each row.
  EXPECT_THAT(load_refusal(path, {{"unet.a", first}, {"unet.b", torch::zeros({2, 5})}}),
              HasSubstr("unet.b has another shape than the model's parameter"));
  EXPECT_THAT(load_refusal(path, {{"unet.a", first}, {"unet.b", second}, {"unet.c", torch::zeros({1})}}),
              HasSubstr("lacks the tensor unet.c"));
  EXPECT_THAT(load_refusal(path, {{"unet.a", first}}), HasSubstr("holds states that this run's optimizer does not"));
}

TEST(Checkpoint, NamesWhatChangedSince) {
  ResumeFingerprint now = state_at(1).fingerprint;
  EXPECT_TRUE(fingerprint_changes(state_at(1).fingerprint, now).empty());
  now.settings["seed"] = "7";
  now.images["00.jpg"] = "other";
  now.images["01.jpg"] = "new";
  const std::vector<Problem> changes = fingerprint_changes(state_at(1).fingerprint, now);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_THAT(changes[0].line(), HasSubstr("seed"));
  EXPECT_THAT(changes[0].line(), HasSubstr("7"));
  EXPECT_THAT(changes[1].line(), HasSubstr("00.jpg"));
  EXPECT_THAT(changes[2].line(), HasSubstr("01.jpg"));
}

}  // namespace
}  // namespace sdtune::train
