#include "train/dist/rank_variables.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "model/base/error.h"

namespace sdtune::train {
namespace {

using Environment = std::map<std::string, std::string>;

RankEnv rank_of(const Environment& variables) {
  return read_rank_env([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

Environment with(Environment variables, const Environment& others) {
  for (const auto& [name, value] : others) variables[name] = value;
  return variables;
}

// Task 5 of 7 on three nodes, as srun sets it.
const Environment kStep{{"SLURM_JOB_ID", "1234567"},
                        {"SLURM_STEP_ID", "0"},
                        {"SLURM_PROCID", "5"},
                        {"SLURM_LOCALID", "1"},
                        {"SLURM_NODEID", "1"},
                        {"SLURM_NTASKS", "7"},
                        {"SLURM_STEP_NUM_TASKS", "7"},
                        {"SLURM_STEP_TASKS_PER_NODE", "4,2,1"},
                        {"SLURM_JOB_NODELIST", "node[01-04]"},
                        {"SLURM_STEP_NODELIST", "node[02-04]"},
                        {"SLURM_RESTART_COUNT", "2"}};

TEST(Slurm, GivesRankHostAndPort) {
  const RankEnv env = rank_of(kStep);
  EXPECT_EQ(env.rank, 5);
  EXPECT_EQ(env.world_size, 7);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(env.local_world_size, 2);
  EXPECT_EQ(env.master_address, "node02");
  EXPECT_EQ(env.master_port, 15000 + 4567);
  EXPECT_EQ(env.attempt, 2);
  EXPECT_EQ(env.run_id, "1234567");
  EXPECT_FALSE(env.agent_store);
}

// Several `srun --exact ... &` in one batch script, on one node: their ranks must not meet each other's.
TEST(Slurm, GivesEachStepOfAJobAPort) {
  std::set<std::int64_t> ports;
  for (const char* step : {"0", "1", "2", "10", "11"}) {
    ports.insert(rank_of(with(kStep, {{"SLURM_STEP_ID", step}})).master_port);
    ports.insert(rank_of(with(kStep, {{"SLURM_STEP_ID", step}, {"SLURM_JOB_ID", "1234568"}})).master_port);
  }
  EXPECT_EQ(ports.size(), 10u);
  EXPECT_GE(*ports.begin(), 15000);
  EXPECT_LT(*ports.rbegin(), 25000);
}

TEST(Slurm, LeavesAnAddressThatIsSet) {
  const RankEnv env = rank_of(with(kStep, {{"MASTER_ADDR", "other"}, {"MASTER_PORT", "29500"}}));
  EXPECT_EQ(env.master_address, "other");
  EXPECT_EQ(env.master_port, 29500);
}

TEST(Slurm, IsOneProcessInABatchScript) {
  Environment batch = kStep;
  batch.erase("SLURM_STEP_ID");
  EXPECT_EQ(rank_of(batch).world_size, 1);
}

TEST(Slurm, NeedsNoHostsForOneTask) {
  const RankEnv env =
      rank_of({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_JOB_NODELIST", "["}});
  EXPECT_EQ(env.world_size, 1);
}

TEST(Slurm, SaysMoreThanThePmiVariablesThatItSets) {
  const Environment pmi2 = with(kStep, {{"PMI_RANK", "5"}, {"PMI_SIZE", "7"}});  // srun --mpi=pmi2
  const RankEnv env = rank_of(pmi2);
  EXPECT_EQ(env.rank, 5);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(env.local_world_size, 2);
  EXPECT_EQ(env.master_address, "node02");
  // mpirun inside of a job step, whose task is what starts the ranks.
  const Environment place{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}};
  const RankEnv started = rank_of(with(with(kStep, place), {{"PMI_RANK", "3"}, {"PMI_SIZE", "14"}}));
  EXPECT_EQ(started.rank, 3);
  EXPECT_EQ(started.world_size, 14);
  EXPECT_EQ(rank_of(with(with(pmi2, place), {{"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}})).local_rank, 0);
}

TEST(OtherLaunchers, TorchrunComesFirst) {
  const RankEnv env =
      rank_of(with(kStep, {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}));
  EXPECT_EQ(env.rank, 1);
  EXPECT_EQ(env.world_size, 2);
}

TEST(OtherLaunchers, ReadMpirunAsAccelerateDoes) {
  const Environment place{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}};
  const RankEnv open = rank_of(with(place, {{"OMPI_COMM_WORLD_RANK", "3"},
                                            {"OMPI_COMM_WORLD_SIZE", "4"},
                                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}));
  EXPECT_EQ(open.rank, 3);
  EXPECT_EQ(open.local_rank, 1);
  const RankEnv intel =
      rank_of(with(place, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}}));
  EXPECT_EQ(intel.rank, 1);
  EXPECT_EQ(intel.local_world_size, 2);
}

// Every rank of a node would else take its first GPU.
TEST(OtherLaunchers, ReadTheLocalRankOfCraysMpiexec) {
  const Environment place{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}};
  const Environment cray{{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"PMI_LOCAL_RANK", "1"}, {"PMI_LOCAL_SIZE", "4"}};
  const RankEnv env = rank_of(with(place, cray));
  EXPECT_EQ(env.rank, 5);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(env.local_world_size, 4);
  // Under srun the step says where the ranks meet.
  EXPECT_EQ(rank_of(with(with(kStep, cray), {{"PMI_SIZE", "7"}})).master_address, "node02");
}

TEST(OtherLaunchers, ContradictionsAreNamed) {
  // `export RANK=$SLURM_PROCID` in the batch script: 0 in every task.
  const Environment exported =
      with(kStep, {{"RANK", "0"}, {"WORLD_SIZE", "7"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}});
  try {
    rank_of(exported);
    ADD_FAILURE() << "not refused";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems().front().where, "RANK");
    EXPECT_NE(error.problems().front().what.find("SLURM_PROCID"), std::string::npos);
  }
  EXPECT_EQ(rank_of(with(exported, {{"RANK", "5"}})).rank, 5);
  // torchrun numbers its ranks anew, whatever srun calls its tasks.
  EXPECT_EQ(rank_of(with(exported, {{"TORCHELASTIC_RUN_ID", "none"}})).rank, 0);
}

}  // namespace
}  // namespace sdtune::train
