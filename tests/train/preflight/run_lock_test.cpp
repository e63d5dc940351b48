#include "train/preflight/run_lock.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "model/base/error.h"
#include "tests/support/scratch_folder.h"

namespace {

int error_of_flock = 0;  // 0: the kernel's flock

}  // namespace

// Takes the place of the C library's function in this whole program.
extern "C" int flock(int descriptor, int operation) noexcept {
  if (error_of_flock == 0) return static_cast<int>(::syscall(SYS_flock, descriptor, operation));
  errno = error_of_flock;
  return -1;
}

namespace sdtune::train {
namespace {

TEST(RunLock, IsHeldByOneAndFreeAfterwards) {
  const test::ScratchFolder scratch;
  const std::filesystem::path file = scratch.path() / "run.lock";
  EXPECT_FALSE(RunLock::holder(file));
  EXPECT_FALSE(std::filesystem::exists(file)) << "to ask creates nothing";
  {
    const RunLock lock(file);
    const std::optional<Problem> held = RunLock::holder(file);
    ASSERT_TRUE(held);
    try {
      const RunLock second(file);
      FAIL();
    } catch (const ConfigError& error) {
      EXPECT_NE(error.problems().front().line().find("process "), std::string::npos);
      EXPECT_EQ(error.problems().front().line(), held->line());
    }
  }
  EXPECT_FALSE(RunLock::holder(file));
  const RunLock again(file);
}

// multiprocessing forks while a run goes on in another thread of Python: that process has a copy of the lock's file
// until it ends.
TEST(RunLock, IsFreeAfterwardsBesideAForkedProcess) {
  constexpr unsigned kLongest = 60;  // s
  const test::ScratchFolder scratch;
  const std::filesystem::path file = scratch.path() / "run.lock";
  pid_t child = -1;
  {
    const RunLock lock(file);
    child = ::fork();
    if (child == 0) {
      ::alarm(kLongest);
      ::pause();
      ::_exit(0);
    }
  }
  ASSERT_GT(child, 0);
  const std::optional<Problem> held = RunLock::holder(file);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(held) << held->line();
}

// A callback may fork, and an exception there unwinds the child's copy of the run.
TEST(RunLock, IsKeptWhenAForkedProcessUnwindsItsCopy) {
  const test::ScratchFolder scratch;
  const std::filesystem::path file = scratch.path() / "run.lock";
  std::optional<RunLock> lock(std::in_place, file);
  const pid_t child = ::fork();
  if (child == 0) {
    lock.reset();
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(RunLock::holder(file));
}

// Lustre that was mounted without -o flock. Whoever asks must hear of it before a run does, as soon as there is a file.
TEST(RunLock, SaysWhatToDoWhereTheDiskHasNoLocks) {
  const test::ScratchFolder scratch;
  const std::filesystem::path file = scratch.write("run.lock", "");
  error_of_flock = ENOSYS;
  const std::optional<Problem> problem = RunLock::holder(file);
  std::string thrown;
  try {
    const RunLock lock(file);
  } catch (const StorageError& error) {
    thrown = error.problems().front().line();
  }
  error_of_flock = 0;
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->line(), thrown);
  EXPECT_NE(thrown.find("cannot lock: Function not implemented; the disk must have flock"), std::string::npos)
      << thrown;
  EXPECT_FALSE(RunLock::holder(file));
}

}  // namespace
}  // namespace sdtune::train
