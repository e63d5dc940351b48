#include "train/rental/finish_command.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "model/files/file_system.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

TEST(FinishCommand, GetsCodeCauseAndFolder) {
  const test::ScratchFolder scratch;
  const std::string file = (scratch.path() / "told").string();
  ::setenv("SDTUNE_CAUSE", "of an earlier run", 1);  // a run inside an on_finish of another one
  const std::string command =
      "printf '%s|%s|%s' \"$SDTUNE_EXIT_CODE\" \"$SDTUNE_CAUSE\" \"$SDTUNE_RUN\" > '" + file + "'";
  EXPECT_FALSE(run_finish_command(command, {143, "it's \"SIGTERM\"; $(rm x)", "runs/a b"}));
  ::unsetenv("SDTUNE_CAUSE");
  EXPECT_EQ(read_file(file),
            "143|it's \"SIGTERM\"; $(rm x)|" + (std::filesystem::current_path() / "runs/a b").string());
}

TEST(FinishCommand, FailuresAreWarnings) {
  EXPECT_FALSE(run_finish_command("", {}));
  EXPECT_FALSE(run_finish_command("true", {}));
  EXPECT_EQ(run_finish_command("exit 7", {})->what, "ended with exit code 7");
  EXPECT_EQ(run_finish_command("kill -9 $$", {})->what, "was ended by signal 9");
  EXPECT_EQ(run_finish_command("/nowhere/at/all 2>/dev/null", {})->what, "ended with exit code 127");
}

}  // namespace
}  // namespace sdtune::train
