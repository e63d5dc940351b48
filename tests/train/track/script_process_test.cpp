// A shell stands for the script. What the real one does is in tests/python/test_trackers.py.
#include "train/track/script_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

constexpr double kLong = 60;  // s; every test here is over at once unless something is wrong

std::vector<std::string> shell(const std::string& script) {
  return {"/bin/bash", "-c", script};
}

TEST(ScriptProcess, HandsOnEveryLineInOrder) {
  ScriptProcess process(
      shell("while read -r line <&3; do echo \"$line\" >&3; [ \"$line\" = '{\"n\":99}' ] && exit; done"), {});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(process.send({{"n", i}}));
  EXPECT_TRUE(process.wait(kLong));
  const std::vector<Json> replies = process.replies();
  ASSERT_EQ(replies.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(replies[i]["n"], i);
}

TEST(ScriptProcess, OneThatReadsNothingFillsTheQueueAndNeverBlocks) {
  ScriptProcess process(shell("exec sleep 1000"), {});
  const std::string megabyte(1 << 20, 'x');
  int taken = 0;
  while (taken < 100 && process.send(megabyte)) ++taken;
  const int limit = static_cast<int>(ScriptProcess::kMostQueued >> 20);
  EXPECT_GE(taken, limit - 1);
  EXPECT_LE(taken, limit + 1);  // the socket itself holds some
  EXPECT_FALSE(process.is_gone());
  EXPECT_TRUE(process.send(1)) << "a short line still fits";
  EXPECT_FALSE(process.send(megabyte));
  EXPECT_TRUE(process.send_last(megabyte)) << "the end has its place";
  EXPECT_FALSE(process.wait(0.05));
}

TEST(ScriptProcess, OneThatEndedTakesNothing) {
  ScriptProcess process(shell("exit 7"), {});
  EXPECT_TRUE(process.wait(kLong));
  EXPECT_TRUE(process.is_gone());
  EXPECT_FALSE(process.send({{"n", 1}}));
}

TEST(ScriptProcess, WhatIsNoObjectIsLeftOut) {
  ScriptProcess process(
      shell("printf '%s\\n' '{\"a\":1}' 'a warning' '[1]' '' '{\"b\":' '{\"c\":3}' >&3; printf '{\"torn\":' >&3"), {});
  EXPECT_TRUE(process.wait(kLong));
  const std::vector<Json> replies = process.replies();
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(replies[0]["a"], 1);
  EXPECT_EQ(replies[1]["c"], 3);
}

TEST(ScriptProcess, BytesThatAreNoTextAreReplaced) {
  ScriptProcess process(shell("read -r line <&3; echo \"$line\" >&3"), {});
  EXPECT_TRUE(process.send({{"caption", "caf\xe9"}}));
  EXPECT_TRUE(process.wait(kLong));
  ASSERT_EQ(process.replies().size(), 1U);
}

TEST(ScriptProcess, OneThatCannotBeStartedSaysWhich) {
  try {
    ScriptProcess process({"/nowhere/python"}, {});
    FAIL() << "it started";
  } catch (const StorageError& error) {
    EXPECT_EQ(error.problems().front().where, "/nowhere/python");
    EXPECT_NE(error.problems().front().what.find("No such file"), std::string::npos);
  }
}

TEST(ScriptProcess, HasASessionOfItsOwnAndNoneOfTheOthersSockets) {
  const std::string words =
      R"(echo "{\"session\":$(ps -o sid= -p $$),\"process\":$$,\"sockets\":$(ls -l /proc/$$/fd | grep -c socket:)}" >&3)";
  ScriptProcess other(shell("exec sleep 1000"), {});
  ScriptProcess process(shell(words), {});
  EXPECT_TRUE(process.wait(kLong));
  const std::vector<Json> replies = process.replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0]["session"], replies[0]["process"]);
  EXPECT_NE(replies[0]["session"], getsid(0));
  EXPECT_EQ(replies[0]["sockets"], 1);
}

TEST(ScriptProcess, ItsOutputGoesToTheLog) {
  const test::ScratchFolder folder;
  const std::filesystem::path log = folder.write("trackers.log", "before\n");
  ScriptProcess process(shell("echo out; echo err >&2"), log);
  EXPECT_TRUE(process.wait(kLong));
  std::ifstream file(log);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, "before\nout\nerr\n");
}

TEST(ScriptProcess, OneThatIgnoresSigtermIsGoneAfterTheDestructor) {
  pid_t script = 0;
  {
    ScriptProcess process(shell("trap '' TERM; echo \"{\\\"process\\\":$$}\" >&3; while true; do sleep 0.1; done"), {});
    std::vector<Json> replies;
    while (replies.empty() && !process.wait(0.05)) replies = process.replies();
    ASSERT_EQ(replies.size(), 1U);
    script = replies[0]["process"].get<pid_t>();
    EXPECT_EQ(kill(script, 0), 0);
  }
  EXPECT_EQ(kill(script, 0), -1);
}

}  // namespace
}  // namespace sdtune::train
