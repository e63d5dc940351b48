#include "train/preflight/run_lock.h"

#include <gtest/gtest.h>

#include "model/base/error.h"
#include "tests/support/scratch_folder.h"

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

}  // namespace
}  // namespace sdtune::train
