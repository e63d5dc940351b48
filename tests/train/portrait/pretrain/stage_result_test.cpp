#include "train/portrait/pretrain/stage_result.h"

#include <gtest/gtest.h>

#include "model/base/error.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train::pretrain {
namespace {

ResumeFingerprint of_seed(const std::string& seed) {
  ResumeFingerprint identity;
  identity.settings = {{"seed", seed}};
  return identity;
}

class StageResult : public ::testing::Test {
 protected:
  void SetUp() override { write_stage_result(real_file_system(), scratch_.path(), of_seed("1"), 30, trained_); }
  bool load(const ResumeFingerprint& identity, std::int64_t steps) {
    return load_stage_result(scratch_.path(), "vae", identity, steps, found_);
  }

  test::ScratchFolder scratch_;
  model::NamedTensors trained_ = {{"a.weight", torch::randn({3, 2})}, {"b", torch::randn({4})}};
  model::NamedTensors found_ = {{"a.weight", torch::zeros({3, 2})}, {"b", torch::zeros({4})}};
};

TEST_F(StageResult, IsTheSameBits) {
  EXPECT_TRUE(load(of_seed("1"), 30));
  for (std::size_t i = 0; i < trained_.size(); ++i) EXPECT_TRUE(found_[i].second.equal(trained_[i].second));
}

TEST_F(StageResult, OfOtherSettingsOrStepsIsRefused) {
  EXPECT_THROW(load(of_seed("2"), 30), ConfigError);
  EXPECT_THROW(load(of_seed("1"), 31), CheckpointError);
}

TEST_F(StageResult, ThatIsDamagedOrOfAnotherNetworkIsRefused) {
  found_[1].second = torch::zeros({5});
  EXPECT_THROW(load(of_seed("1"), 30), CheckpointError);
  found_[1].second = torch::zeros({4});
  std::string bytes = read_file(scratch_.path() / "result.safetensors");
  bytes.back() ^= 1;
  write_file_atomically(real_file_system(), scratch_.path() / "result.safetensors", bytes);
  EXPECT_THROW(load(of_seed("1"), 30), CheckpointError);
  std::filesystem::remove(scratch_.path() / "result.json");
  EXPECT_FALSE(load(of_seed("1"), 30));
}

}  // namespace
}  // namespace sdtune::train::pretrain
