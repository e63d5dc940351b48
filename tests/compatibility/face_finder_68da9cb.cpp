// Three tests of tests/train/data/face_program_test.cpp for the FaceFinder of commit 68da9cb; run_cpp_tests.sh compiles
// them.
#include "face_finder_half_second.cpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <fstream>
#include <sstream>
#include <thread>
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {
constexpr const char* kReady = "echo '{\"ready\": true}'\n";
constexpr const char* kTake = "read -r header || exit 0\nhead -c 6 > /dev/null\nid=$((id+1))\n";

void program(const std::string& folder, const std::string& script) {
  const fs::path path = fs::read_symlink("/proc/self/exe").parent_path() / "sdtune-faces";
  std::ofstream(path) << "#!/bin/sh\ncd \"" << folder << "\"\nid=0\n" << script;
  fs::permissions(path, fs::perms::owner_all);
}

TEST(OldFaces, ALateAnswerIsNotThatOfTheNextImage) {
  test::ScratchFolder scratch;
  program(
      scratch.path().string(),
      std::string(kReady) + "while true; do\n" + kTake +
          "if [ ! -e slow ]; then touch slow; sleep 1; fi\n"
          "echo '{\"faces\": [{\"left\": 0, \"top\": 0, \"width\": '$id', \"height\": 1}], \"id\": '$id'}'\ndone\n");
  FaceFinder finder({}, {});
  const Image image{2, 1, std::vector<std::uint8_t>(6)};
  EXPECT_THROW(finder.look(image), DataError);
  usleep(800'000);
  EXPECT_EQ(finder.look(image).faces.at(0).width, 2);
}

TEST(OldFaces, HasAProcessGroupOfItsOwn) {
  test::ScratchFolder scratch;
  program(scratch.path().string(), "cut -d' ' -f5 /proc/$$/stat > group\n" + std::string(kReady) + "cat > /dev/null\n");
  FaceFinder finder({}, {});
  long group = 0;
  std::ifstream(scratch.path() / "group") >> group;
  EXPECT_NE(group, static_cast<long>(getpgrp()));
}

TEST(OldFaces, SendingEndsToo) {
  test::ScratchFolder scratch;
  program(scratch.path().string(), std::string(kReady) + "exec sleep 6\n");
  FaceFinder finder({}, {});
  const Image image{4096, 1024, std::vector<std::uint8_t>(std::size_t{3} << 22)};
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(finder.look(image), DataError);
  EXPECT_LT(std::chrono::steady_clock::now() - start,
            std::chrono::seconds(4));  // it ended with the program, not with its patience
}
}  // namespace
}  // namespace sdtune::train
