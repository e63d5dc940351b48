// Ranks that are shells: what launch does with signals, ends and output.
#include "app/launch/rank_group.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/scratch_folder.h"

namespace sdtune::app {
namespace {

using namespace std::chrono_literals;

// stdout or stderr, into a pipe, until the end.
class Redirected {
 public:
  explicit Redirected(int file) : file_(file), before_(::dup(file)) {
    EXPECT_EQ(::pipe(ends_), 0);
    ::dup2(ends_[1], file);
  }
  ~Redirected() {
    ::dup2(before_, file_);
    for (const int end : {before_, ends_[0], ends_[1]}) ::close(end);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;
  int read_end() const { return ends_[0]; }

 private:
  int file_, before_;
  int ends_[2];
};

RankStart shell(const std::string& script, const SignalReader& signals) {
  return {"/bin/sh", {"-c", script}, {"PATH=/usr/bin:/bin"}, signals.before()};
}

// What a rank's script says when its traps are set.
std::string make_file(const std::filesystem::path& path) {
  return ": >'" + path.string() + "'; ";
}

// Once these files are there; after a minute in any case, so that a rank that never began ends the test too.
std::thread signal_when_made(std::vector<std::filesystem::path> files, int signal) {
  return std::thread([files = std::move(files), signal] {
    const auto latest = std::chrono::steady_clock::now() + 60s;
    for (const std::filesystem::path& file : files) {
      while (!std::filesystem::exists(file) && std::chrono::steady_clock::now() < latest) {
        std::this_thread::sleep_for(10ms);
      }
    }
    ::kill(::getpid(), signal);
  });
}

TEST(RankGroup, ASignalReachesRanksWhoseOutputNobodyReads) {
  const test::ScratchFolder folder;
  const std::filesystem::path begun = folder.path() / "begun";
  const Redirected out(STDOUT_FILENO);
  SignalReader signals;
  RankGroup group(signals, 100ms);
  const std::string full = "yes & sleep 1; " + make_file(begun);  // by then nothing more fits into the pipe
  group.start(0, shell("trap 'exit 143' TERM; " + full + "while :; do sleep 0.1; done", signals));
  std::thread sender = signal_when_made({begun}, SIGTERM);
  group.wait();  // would never end
  sender.join();
  EXPECT_EQ(group.forwarded(), SIGTERM);
  ASSERT_EQ(group.ends().size(), 1u);
  EXPECT_EQ(exit_code(group.ends()[0]), 143);
}

TEST(RankGroup, ARankThatASignalKilledIsAFailure) {
  const test::ScratchFolder folder;
  const std::filesystem::path first = folder.path() / "first", second = folder.path() / "second";
  const std::string loop = "while :; do sleep 0.1; done";
  SignalReader signals;
  RankGroup group(signals, 100ms);
  group.start(0, shell("trap '' TERM; " + make_file(first) + loop, signals));  // waits for the other one
  group.start(1, shell(make_file(second) + loop, signals));
  std::thread sender = signal_when_made({first, second}, SIGTERM);
  group.wait();  // would never end
  sender.join();
  ASSERT_EQ(group.ends().size(), 2u);
  EXPECT_EQ(group.ends()[0].rank, 1);
  EXPECT_EQ(exit_code(group.ends()[1]), 128 + SIGKILL);
}

TEST(RankGroup, ARankThatSavesAfterASignalHasItsTime) {
  const test::ScratchFolder folder;
  const std::filesystem::path first = folder.path() / "first", second = folder.path() / "second";
  const std::string loop = "while :; do sleep 0.1; done";
  SignalReader signals;
  RankGroup group(signals, 100ms);
  group.start(0, shell("trap 'sleep 7; exit 143' TERM; " + make_file(first) + loop, signals));
  group.start(1, shell("trap 'exit 143' TERM; " + make_file(second) + loop, signals));
  std::thread sender = signal_when_made({first, second}, SIGTERM);
  group.wait();
  sender.join();
  ASSERT_EQ(group.ends().size(), 2u);
  EXPECT_EQ(exit_code(group.ends()[1]), 143) << "killed while it saved";
}

TEST(RankGroup, AnEndThatTheKernelDoesNotTellIsAnEnd) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  SignalReader signals;
  RankGroup group(signals, 100ms);
  group.start(0, shell("exit 0", signals));
  group.wait();  // would never end
  std::signal(SIGCHLD, before);
  ASSERT_EQ(group.ends().size(), 1u);
  EXPECT_EQ(exit_code(group.ends()[0]), 1);
}

TEST(RankGroup, ASlowReaderGetsEveryLine) {
  const Redirected out(STDOUT_FILENO);
  std::string got;
  std::thread reader([&] {
    char part[4096];
    while (got.find("last") == std::string::npos) {
      const ssize_t count = ::read(out.read_end(), part, sizeof(part));
      if (count <= 0) break;
      got.append(part, static_cast<std::size_t>(count));
      std::this_thread::sleep_for(1ms);
    }
  });
  SignalReader signals;
  RankGroup group(signals, 100ms);
  group.start(3, shell("yes 1234567 | head -n 200000; echo last", signals));
  group.wait();
  reader.join();
  EXPECT_EQ(std::count(got.begin(), got.end(), '\n'), 200001);
  EXPECT_TRUE(got.ends_with("[rank 3] last\n"));
}

}  // namespace
}  // namespace sdtune::app
