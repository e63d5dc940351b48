#include "train/dist/rank_env.h"

#include <gtest/gtest.h>

#include <map>

#include "model/base/error.h"

namespace sdtune::train {
namespace {

using Variables = std::map<std::string, std::string>;

RankEnv read(const Variables& variables) {
  return read_rank_env([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string blamed(const Variables& variables) {
  try {
    read(variables);
  } catch (const ConfigError& error) {
    return error.problems().front().where;
  }
  return "nothing";
}

const Variables kTorchrun{{"RANK", "3"},
                          {"WORLD_SIZE", "4"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "host"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                          {"TORCHELASTIC_RESTART_COUNT", "2"}};

TEST(RankEnv, IsOneRankWithoutVariables) {
  EXPECT_EQ(read({}).world_size, 1);
  EXPECT_EQ(read({{"MASTER_PORT", "nonsense"}}).world_size, 1);
}

TEST(RankEnv, ReadsTorchrunsContract) {
  const RankEnv env = read(kTorchrun);
  EXPECT_EQ(env.rank, 3);
  EXPECT_EQ(env.world_size, 4);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(env.local_world_size, 2);
  EXPECT_EQ(env.master_address, "host");
  EXPECT_EQ(env.master_port, 29500);
  EXPECT_TRUE(env.agent_store);
  EXPECT_EQ(env.attempt, 2);
}

// As batch scripts set them that follow PyTorch's tutorials.
TEST(RankEnv, NeedsNoNumberOfRanksOnThisHost) {
  Variables variables = kTorchrun;
  variables.erase("LOCAL_WORLD_SIZE");
  const RankEnv env = read(variables);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(device_for_rank("cuda", env, true), "cuda:1");
  variables["LOCAL_RANK"] = "4";
  EXPECT_EQ(blamed(variables), "LOCAL_RANK") << "beyond all ranks";
  variables.erase("LOCAL_RANK");
  EXPECT_EQ(read(variables).local_rank, 0);
  EXPECT_EQ(read(variables).local_world_size, 1);
}

TEST(RankEnv, ReadsTheRestartsThatSdtuneLaunchHasLeft) {
  EXPECT_EQ(read(kTorchrun).restarts_left, 0);
  Variables launched = kTorchrun;
  launched["SDTUNE_RESTARTS_LEFT"] = "3";
  EXPECT_EQ(read(launched).restarts_left, 3);
  EXPECT_EQ(read({{"SDTUNE_RESTARTS_LEFT", "3"}}).restarts_left, 0) << "this is no rank";
}

TEST(RankEnv, NamesTheVariableThatIsWrong) {
  const auto with = [](const std::string& name, const std::string& value) {
    Variables changed = kTorchrun;
    changed[name] = value;
    return changed;
  };
  for (const auto& [name, value] : Variables{{"RANK", "4"},
                                             {"WORLD_SIZE", "0"},
                                             {"LOCAL_RANK", "2"},
                                             {"MASTER_PORT", "70000"},
                                             {"MASTER_ADDR", ""},
                                             {"TORCHELASTIC_RESTART_COUNT", "-1"}}) {
    EXPECT_EQ(blamed(with(name, value)), name);
  }
  EXPECT_EQ(blamed(with("RANK", "1 ")), "RANK");
  EXPECT_EQ(blamed({{"RANK", "0"}}), "WORLD_SIZE");
  EXPECT_EQ(blamed({{"WORLD_SIZE", "2"}}), "RANK");
}

TEST(DeviceForRank, GivesEachRankItsOwnGpu) {
  const RankEnv env = read(kTorchrun);
  EXPECT_EQ(device_for_rank("cuda", env, true), "cuda:1");
  EXPECT_EQ(device_for_rank("auto", env, true), "cuda:1");
  EXPECT_EQ(device_for_rank("auto", env, false), "auto");
  EXPECT_EQ(device_for_rank("cpu", env, true), "cpu");
  EXPECT_EQ(device_for_rank("cuda", RankEnv{}, true), "cuda");
}

}  // namespace
}  // namespace sdtune::train
