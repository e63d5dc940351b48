#include "train/prove/child_process.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "model/files/file_system.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Children : public testing::Test {
 protected:
  Child shell(const std::string& script, const std::string& name = "log") const {
    return {{"/bin/sh", "-c", script}, {}, folder_.path() / name};
  }

  test::ScratchFolder folder_;
  StopFlag stop_;
};

TEST_F(Children, SaysHowEachEnded) {
  const ChildrenEnd end =
      run_children({shell("exit 0", "a"), shell("exit 7", "b"), shell("kill -9 $$", "c")}, seconds(30), stop_);
  EXPECT_EQ(end.codes, (std::vector<int>{0, 7, 128 + SIGKILL}));
  EXPECT_FALSE(end.all_done());
  EXPECT_FALSE(end.out_of_time || end.stopped);
  EXPECT_EQ(run_children({{{"/nowhere/at/all"}, {}, folder_.path() / "d"}}, seconds(30), stop_).codes.front(), 127);
}

TEST_F(Children, EndAlsoWhereTheKernelDoesNotTellHow) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const ChildrenEnd end = run_children({shell("exit 0", "a"), shell("exit 7", "b")}, seconds(30), stop_);
  std::signal(SIGCHLD, before);
  EXPECT_EQ(end.codes, (std::vector<int>{1, 1})) << "a success that is not known is none";
  EXPECT_FALSE(end.out_of_time);
}

TEST_F(Children, HaveTheirOwnEnvironmentAndOutput) {
  Child child = shell("echo $RANK; echo trouble >&2");
  child.environment = {{"RANK", "3"}};
  child.output = folder_.path() / "out";
  EXPECT_TRUE(run_children({child}, seconds(30), stop_).all_done());
  EXPECT_EQ(read_file(child.output), "3\n");
  EXPECT_EQ(read_file(child.log), "trouble\n");
  EXPECT_EQ(last_words(child.log), "trouble");
  EXPECT_EQ(last_words(folder_.path() / "gone"), "");
}

TEST_F(Children, AreAskedToEndWhenTimeIsOver) {
  const ChildrenEnd end =
      run_children({shell("trap 'exit 143' TERM; while :; do sleep 0.05; done")}, milliseconds(300), stop_);
  EXPECT_TRUE(end.out_of_time);
  EXPECT_EQ(end.codes.front(), 143) << "with time to save what they have";
}

TEST_F(Children, AreKilledWhereTheyDoNotEnd) {
  const ChildrenEnd end =
      run_children({shell("trap '' TERM; while :; do sleep 0.05; done")}, milliseconds(200), stop_, milliseconds(300));
  EXPECT_EQ(end.codes.front(), 128 + SIGKILL);
}

TEST_F(Children, EndWithAStopRequest) {
  stop_.request(SIGINT);
  const ChildrenEnd end = run_children({shell("sleep 60")}, seconds(60), stop_);
  EXPECT_TRUE(end.stopped);
  EXPECT_FALSE(end.out_of_time);
  EXPECT_EQ(end.codes.front(), 128 + SIGTERM);
}

}  // namespace
}  // namespace sdtune::train
