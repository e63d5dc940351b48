#include "train/track/python_interpreter.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/environment.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;
using test::Environment;

fs::path write_program(const test::ScratchFolder& folder, const std::string& name, bool executable = true) {
  const fs::path file = folder.write(name, "#!/bin/sh\n");
  fs::permissions(file, executable ? fs::perms::owner_all : fs::perms::owner_read);
  return file;
}

TEST(PythonInterpreter, TheVariableWins) {
  const test::ScratchFolder folder;
  write_program(folder, "bin/python3");
  const Environment given("SDTUNE_PYTHON", "/given/python");
  EXPECT_EQ(find_python(folder.path() / "bin/sdtune"), "/given/python");
}

TEST(PythonInterpreter, TheOneBesideTheProgramIsAheadOfPath) {
  const test::ScratchFolder folder;
  const fs::path beside = write_program(folder, "bin/python3");
  const fs::path on_path = write_program(folder, "path/python3");
  const Environment unset("SDTUNE_PYTHON", "");
  const Environment path("PATH", on_path.parent_path().string());
  EXPECT_EQ(find_python(folder.path() / "bin/sdtune"), beside);
  EXPECT_EQ(find_python(folder.path() / "elsewhere/sdtune"), on_path);
}

TEST(PythonInterpreter, PathIsSearchedInOrderForWhatMayBeRun) {
  const test::ScratchFolder folder;
  write_program(folder, "first/python3", /*executable=*/false);
  const fs::path second = write_program(folder, "second/python3");
  write_program(folder, "third/python3");
  const Environment unset("SDTUNE_PYTHON", "");
  const std::string root = folder.path().string();
  const Environment path("PATH", root + "/missing:" + root + "/first:" + root + "/second:" + root + "/third");
  // Root may read what it may not execute; access() knows.
  EXPECT_EQ(find_python("/elsewhere/sdtune"), second);
  const Environment none("PATH", root + "/missing");
  EXPECT_TRUE(find_python("/elsewhere/sdtune").empty());
}

}  // namespace
}  // namespace sdtune::train
