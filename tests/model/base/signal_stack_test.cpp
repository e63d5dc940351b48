#include "model/base/signal_stack.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace sdtune {
namespace {

uintptr_t frame = 0;

void note_frame(int) {
  frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
}

// Below this function's own frame and near it: where a handler's frame lies that has no other place.
bool handler_runs_here() {
  raise(SIGUSR1);
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return frame < here && here - frame < 64 * 1024;
}

class SignalStackTest : public testing::Test {
 protected:
  SignalStackTest() {
    struct sigaction action = {};
    action.sa_handler = note_frame;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, &old_);
  }
  ~SignalStackTest() override { sigaction(SIGUSR1, &old_, nullptr); }

 private:
  struct sigaction old_ = {};
};

TEST_F(SignalStackTest, TakesHandlersOffTheThreadsStackWhileItLives) {
  EXPECT_TRUE(handler_runs_here());
  std::optional<SignalStack> stack(std::in_place);
  EXPECT_FALSE(handler_runs_here());
  stack.reset();
  EXPECT_TRUE(handler_runs_here());
}

TEST_F(SignalStackTest, LeavesAStackThatIsThereAlready) {
  std::vector<char> memory(256 * 1024);
  stack_t own = {}, found = {};
  own.ss_sp = memory.data();
  own.ss_size = memory.size();
  ASSERT_EQ(sigaltstack(&own, nullptr), 0);
  { const SignalStack stack; }
  ASSERT_EQ(sigaltstack(nullptr, &found), 0);
  EXPECT_EQ(found.ss_sp, own.ss_sp);
  own = {};
  own.ss_flags = SS_DISABLE;
  sigaltstack(&own, nullptr);
}

}  // namespace
}  // namespace sdtune
