// The protocol with sdtune-faces, against programs of a few lines that misbehave.
#include "train/data/face_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "model/base/error.h"
#include "model/base/image.h"
#include "tests/support/scratch_folder.h"
#include "train/data/face_finder.h"

namespace sdtune::train {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr const char* kReady = "echo '{\"ready\": true}'\n";
// Takes a request of an image of 2 x 1 px and says its number in $id.
constexpr const char* kTake =
    "read -r header || exit 0\n"
    "head -c 6 > /dev/null\n"
    "id=$(echo \"$header\" | sed 's/.*\"id\":\\([0-9]*\\).*/\\1/')\n";

class FaceProgramTest : public testing::Test {
 protected:
  FaceProgramOptions program(const std::string& script, milliseconds patience = milliseconds(5000)) const {
    const auto path = scratch_.write("faces", "#!/bin/sh\ncd \"" + scratch_.path().string() + "\"\n" + script);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return {path, patience};
  }
  std::string file(const char* name) const {
    std::stringstream text;
    text << std::ifstream(scratch_.path() / name).rdbuf();
    return text.str();
  }
  static std::string failure(FaceProgram& faces) {
    try {
      faces.ask({{"width", 2}, {"height", 1}}, "RGBRGB");
    } catch (const DataError& error) {
      return error.what();
    }
    return "none";
  }

  test::ScratchFolder scratch_;
};

// Each answer says which request it belongs to: the width of the face is the request's number.
TEST_F(FaceProgramTest, ALateAnswerIsNotThatOfTheNextImage) {
  const std::string script = std::string(kReady) + "while true; do\n" + kTake +
                             "if [ ! -e slow ]; then touch slow; sleep 1; fi\n"
                             "echo '{\"faces\": [{\"left\": 0, \"top\": 0, \"width\": '$id', \"height\": 1}], "
                             "\"id\": '$id'}'\ndone\n";
  FaceFinder finder({}, {}, program(script, milliseconds(500)));
  const Image image{2, 1, std::vector<std::uint8_t>(6)};
  try {
    finder.find(image);
    FAIL() << "waited longer than it may";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("does not answer within"));
  }
  usleep(800'000);  // long enough for the late answer to come
  EXPECT_EQ(finder.find(image).faces.at(0).width, 2);
}

TEST_F(FaceProgramTest, AnAnswerToAnotherRequestIsRefused) {
  FaceProgram faces(program(std::string(kReady) + kTake + "echo '{\"faces\": [], \"id\": 7}'\nexec sleep 5\n"), {});
  EXPECT_THAT(failure(faces), HasSubstr("answered another request (got id 7; expected 1)"));
  FaceProgram silent(program(std::string(kReady) + kTake + "echo '{\"faces\": []}'\nexec sleep 5\n"), {});
  EXPECT_THAT(failure(silent), HasSubstr("got id null"));
}

TEST_F(FaceProgramTest, SendingEndsToo) {
  FaceProgram faces(program(std::string(kReady) + "exec sleep 60\n", milliseconds(300)), {});
  const std::string much(std::size_t{16} << 20, 'x');  // more than a socket takes
  EXPECT_THROW(faces.ask({{"width", 2}}, much), DataError);
}

TEST_F(FaceProgramTest, OneThatDiedIsStartedAnew) {
  const std::string script = std::string(kReady) + "while true; do\n" + kTake +
                             "if [ ! -e died ]; then touch died; exit 1; fi\n"
                             "echo '{\"faces\": [], \"id\": '$id'}'\ndone\n";
  FaceProgram faces(program(script), {});
  EXPECT_THAT(failure(faces), HasSubstr("has ended without an answer"));
  EXPECT_EQ(failure(faces), "none");
}

TEST_F(FaceProgramTest, ItsOwnErrorIsSaidAndAMuteOneIsNotWaitedForForever) {
  EXPECT_THROW(FaceProgram(program("echo '{\"error\": \"no such model\"}'\n"), {"model"}), DataError);
  EXPECT_THROW(FaceProgram(program("exec sleep 60\n", milliseconds(200)), {}), DataError);
  EXPECT_THROW(FaceProgram({scratch_.path() / "nowhere"}, {}), DataError);
}

// A terminal's Ctrl-C goes to a process group.
TEST_F(FaceProgramTest, HasAProcessGroupOfItsOwnAndEndsWithItsInput) {
  std::string pid;
  {
    FaceProgram faces(
        program("cut -d' ' -f5 /proc/$$/stat > group\necho $$ > pid\n" + std::string(kReady) + "cat > /dev/null\n"),
        {});
    EXPECT_NE(std::stol(file("group")), static_cast<long>(getpgrp()));
    EXPECT_EQ(std::stol(file("group")), std::stol(file("pid")));
    pid = file("pid");
  }
  EXPECT_NE(kill(static_cast<pid_t>(std::stol(pid)), 0), 0);
}

}  // namespace
}  // namespace sdtune::train
