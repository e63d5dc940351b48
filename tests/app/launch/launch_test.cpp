#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "app/launch/held_port.h"
#include "app/launch/launch_options.h"
#include "app/launch/output_lines.h"
#include "app/launch/rank_end.h"
#include "app/launch/rank_environment.h"
#include "app/launch/restart_words.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::app {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int exited(int code) {
  return code << 8;
}

TEST(Rendezvous, IsAHostAndAPort) {
  EXPECT_EQ(parse_rendezvous("node-1:29500").host, "node-1");
  EXPECT_EQ(parse_rendezvous("node-1:29500").port, 29500);
  EXPECT_EQ(parse_rendezvous("[fe80::1]:1").host, "fe80::1");
  for (const char* wrong : {"", "host", ":1", "host:", "host:0", "host:65536", "host:1x", "host:-1", "a:b:1", "[]:1",
                            "a b:1", "http://a:1", "host: 1"}) {
    EXPECT_THROW(parse_rendezvous(wrong), ConfigError) << wrong;
  }
}

TEST(LaunchGrace, CoversTheTrackersOfRank0) {
  LaunchOptions options;
  options.grace = 30;
  EXPECT_EQ(grace_with_trackers(options, 120), 150);
  options.node_rank = 1;
  EXPECT_EQ(grace_with_trackers(options, 120), 30);
}

TEST(LaunchProblems, NameWhatContradicts) {
  LaunchOptions options;
  EXPECT_THAT(launch_problems(options), IsEmpty());
  options.nnodes = 2;
  options.node_rank = 2;
  const std::vector<Problem> problems = launch_problems(options);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].where, "--node-rank");
  EXPECT_EQ(problems[1].where, "--rendezvous");
}

TEST(RankEnvironment, HasTorchrunsNames) {
  const std::vector<std::string> own{"HOME=/x", "RANK=9", "TORCHELASTIC_USE_AGENT_STORE=True", "RANKS=3"};
  const std::vector<std::string> got = rank_environment(own, {2, 3, 1, "host", 29500, 0, 5}, 1);
  for (const char* entry : {"HOME=/x", "RANKS=3", "RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=6", "LOCAL_WORLD_SIZE=2",
                            "GROUP_RANK=1", "MASTER_ADDR=host", "MASTER_PORT=29500", "OMP_NUM_THREADS=2"}) {
    EXPECT_THAT(got, Contains(entry).Times(1));
  }
  EXPECT_THAT(got, Not(Contains("RANK=9")));
  EXPECT_THAT(got, Not(Contains(StartsWith("TORCHELASTIC_USE_AGENT_STORE"))));
}

TEST(RankEnvironment, SaysHowManyRestartsAreLeft) {
  RankPlan plan{2, 1, 0, "host", 29500, 1, 4};
  plan.restarts_left = 2;
  const std::vector<std::string> got = rank_environment({"SDTUNE_RESTARTS_LEFT=9"}, plan, 0);
  EXPECT_THAT(got, Contains(StartsWith("SDTUNE_RESTARTS_LEFT=")).Times(1));
  EXPECT_THAT(got, Contains("SDTUNE_RESTARTS_LEFT=2"));
}

TEST(RankEnvironment, LeavesThreadsThatAreSet) {
  const std::vector<std::string> got = rank_environment({"OMP_NUM_THREADS=7"}, {8, 1, 0, "h", 1, 0, 4}, 0);
  EXPECT_THAT(got, Contains(StartsWith("OMP_NUM_THREADS")).Times(1));
  EXPECT_THAT(got, Contains("OMP_NUM_THREADS=7"));
  EXPECT_THAT(rank_environment({}, {8, 1, 0, "h", 1, 0, 4}, 0), Contains("OMP_NUM_THREADS=1"));
}

TEST(OutputLines, AreWholeAndNeverEmptyInParts) {
  OutputLines lines("[rank 1] ");
  EXPECT_EQ(lines.add("one\ntw"), "[rank 1] one\n");
  EXPECT_EQ(lines.add("o"), "");
  EXPECT_EQ(lines.add("\n\nthree"), "[rank 1] two\n[rank 1] \n");
  EXPECT_EQ(lines.finish(), "[rank 1] three\n");
  EXPECT_EQ(lines.finish(), "");
}

TEST(OutputLines, CutALineWithoutEnd) {
  OutputLines lines("");
  const std::string got = lines.add(std::string(200 * 1024, 'x'));
  EXPECT_EQ(got.size(), 3 * (64 * 1024 + 1));
  EXPECT_EQ(lines.finish().size(), 8 * 1024 + 1);
}

TEST(RankEnd, CodesAndRetries) {
  EXPECT_EQ(exit_code({0, exited(2)}), 2);
  EXPECT_EQ(exit_code({0, SIGKILL}), 137);
  for (const int code : {0, 1, 2, 3, 4, 5, 6, 130, 143, 137}) EXPECT_FALSE(may_retry({0, exited(code)})) << code;
  EXPECT_TRUE(may_retry({0, exited(138)}));
  EXPECT_TRUE(may_retry({0, SIGKILL}));
  EXPECT_FALSE(may_retry({0, SIGKILL, true}));
}

TEST(RankEnd, OfRank0MayBeOneThatExpectsARestart) {
  EXPECT_TRUE(expects_restart({{1, SIGKILL}, {0, exited(138)}}));
  EXPECT_TRUE(expects_restart({{1, exited(4)}, {0, exited(138), true}})) << "it could not know of the other code";
  // Told by rank 0 itself, of another rank, and of one that could tell nothing.
  for (const int code : {0, 2, 130, 143}) EXPECT_FALSE(expects_restart({{0, exited(code)}, {1, SIGKILL}})) << code;
  EXPECT_FALSE(expects_restart({{1, exited(138)}, {0, SIGKILL}}));
  EXPECT_FALSE(expects_restart({}));
}

TEST(FirstCause, IsNoConsequence) {
  EXPECT_EQ(first_cause({{0, exited(0)}, {1, exited(0)}}), nullptr);
  // The survivors of a killed rank end with 138, in any order of being seen.
  EXPECT_EQ(first_cause({{0, exited(138)}, {1, SIGKILL}})->rank, 1);
  EXPECT_EQ(first_cause({{0, exited(138)}, {2, exited(2)}, {1, exited(4)}})->rank, 2);
  // A rank that did not answer is killed by launch: that is no cause.
  EXPECT_EQ(first_cause({{0, exited(138)}, {1, SIGKILL, true}})->rank, 0);
  EXPECT_EQ(exit_code(*first_cause({{1, exited(143), true}, {0, exited(143), true}})), 143);
}

TEST(RestartWords, ResumeTheNewestCheckpoint) {
  const std::vector<std::string> words{"train"};
  EXPECT_THAT(restart_words(words, {}), ElementsAre("train", "--resume-from-checkpoint=auto"));
  EXPECT_THAT(restart_words(words, {"auto"}), ElementsAre("train", "--resume-from-checkpoint=auto"));
  EXPECT_THAT(restart_words(words, {"latest"}), ElementsAre("train"));
  EXPECT_THAT(restart_words(words, {"a/folder", false, true, false}), ElementsAre("train"));
  EXPECT_THAT(restart_words(words, {"a/folder", false, true, true}),
              ElementsAre("train", "--resume-from-checkpoint=latest"));
}

TEST(RestartWords, ClearAnEarlierRunOnce) {
  const std::vector<std::string> words{"train", "--overwrite"};
  // Killed before it was cleared: what is in the folder is still the earlier run.
  EXPECT_THAT(restart_words(words, {"", true, false, true}), ElementsAre("train", "--overwrite"));
  EXPECT_THAT(restart_words(words, {"", true, true, true}),
              ElementsAre("train", "--overwrite", "--overwrite=false", "--resume-from-checkpoint=auto"));
}

TEST(RestartWords, CountWholeCheckpointsAlone) {
  const test::ScratchFolder folder;
  EXPECT_FALSE(has_whole_checkpoint(folder.path() / "checkpoints"));
  folder.write("checkpoints/step-00000010/weights.safetensors", "");
  folder.write("checkpoints/step-00000020.tmp/manifest.json", "{}");
  folder.write("checkpoints/step-/manifest.json", "{}");
  folder.write("checkpoints/copy-00000020/manifest.json", "{}");
  EXPECT_FALSE(has_whole_checkpoint(folder.path() / "checkpoints"));
  folder.write("checkpoints/step-00000010/manifest.json", "{}");
  EXPECT_TRUE(has_whole_checkpoint(folder.path() / "checkpoints"));
}

// Listens on all addresses as LibTorch's store does.
int listen_on(std::int64_t port, bool reuse) {
  const int file = ::socket(AF_INET6, SOCK_STREAM, 0);
  const int yes = reuse ? 1 : 0, no = 0;
  ::setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  ::setsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_any;
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  const bool listens =
      ::bind(file, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 && ::listen(file, 8) == 0;
  ::close(file);
  return listens ? 1 : 0;
}

TEST(HeldPort, IsFreeForTheStoreAlone) {
  const HeldPort first, second;
  EXPECT_NE(first.port(), second.port());
  EXPECT_TRUE(listen_on(first.port(), true));
  EXPECT_FALSE(listen_on(first.port(), false));
}

}  // namespace
}  // namespace sdtune::app
