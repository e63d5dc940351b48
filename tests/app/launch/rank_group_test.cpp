// Ranks that are shells: what launch does with signals, ends and output.
#include "app/launch/rank_group.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

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

std::thread signal_after(std::chrono::milliseconds time, int signal) {
  return std::thread([=] {
    std::this_thread::sleep_for(time);
    ::kill(::getpid(), signal);
  });
}

TEST(RankGroup, ASignalReachesRanksWhoseOutputNobodyReads) {
  const Redirected out(STDOUT_FILENO);
  SignalReader signals;
  RankGroup group(signals, 100ms);
  group.start(0, shell("trap 'exit 143' TERM; yes & while :; do sleep 0.1; done", signals));
  std::thread sender = signal_after(1s, SIGTERM);
  group.wait();  // would never end
  sender.join();
  EXPECT_EQ(group.forwarded(), SIGTERM);
  ASSERT_EQ(group.ends().size(), 1u);
  EXPECT_EQ(exit_code(group.ends()[0]), 143);
}

TEST(RankGroup, ARankThatASignalKilledIsAFailure) {
  SignalReader signals;
  RankGroup group(signals, 100ms);
  group.start(0, shell("trap '' TERM; while :; do sleep 0.1; done", signals));  // waits for the other one
  group.start(1, shell("while :; do sleep 0.1; done", signals));
  std::thread sender = signal_after(300ms, SIGTERM);
  group.wait();  // would never end
  sender.join();
  ASSERT_EQ(group.ends().size(), 2u);
  EXPECT_EQ(group.ends()[0].rank, 1);
  EXPECT_EQ(exit_code(group.ends()[1]), 128 + SIGKILL);
}

TEST(RankGroup, ARankThatSavesAfterASignalHasItsTime) {
  SignalReader signals;
  RankGroup group(signals, 100ms);
  group.start(0, shell("trap 'sleep 7; exit 143' TERM; while :; do sleep 0.1; done", signals));
  group.start(1, shell("trap 'exit 143' TERM; while :; do sleep 0.1; done", signals));
  std::thread sender = signal_after(300ms, SIGTERM);
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
