// On a terminal of the system, whose window is the test.
#include "app/ui/progress_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "tests/support/environment.h"

namespace sdtune::app {
namespace {

class Window : public testing::Test {
 protected:
  void SetUp() override {
    columns_.unset("COLUMNS");
    window_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_GE(window_, 0);
    ASSERT_EQ(::grantpt(window_), 0);
    ASSERT_EQ(::unlockpt(window_), 0);
    const int terminal = ::open(::ptsname(window_), O_RDWR | O_NOCTTY);
    ASSERT_GE(terminal, 0);
    stream_ = ::fdopen(terminal, "w");
    ASSERT_NE(stream_, nullptr);
  }
  void TearDown() override {
    if (stream_ != nullptr) std::fclose(stream_);
    if (window_ >= 0) ::close(window_);
  }
  void resize(unsigned short columns) const {
    const winsize size{24, columns, 0, 0};
    ASSERT_EQ(::ioctl(window_, TIOCSWINSZ, &size), 0);
  }
  std::string shown() const {
    std::array<char, 4096> bytes{};
    const ssize_t got = ::read(window_, bytes.data(), bytes.size());
    return got > 0 ? std::string(bytes.data(), static_cast<std::size_t>(got)) : "";
  }

  test::Environment kind_{"TERM", "xterm"}, columns_;
  int window_ = -1;
  std::FILE* stream_ = nullptr;
};

// A longer line would wrap, and each that is drawn over it would begin a row below.
TEST_F(Window, ThatIsMadeNarrowerHasShorterLines) {
  resize(90);
  ProgressLine line(stream_);
  line.update(std::string(200, 'x'), true);
  EXPECT_EQ(shown(), "\r" + std::string(89, 'x'));
  resize(40);
  line.update(std::string(200, 'y'), true);
  EXPECT_EQ(shown(), "\r" + std::string(39, 'y'));
  resize(60);
  line.update("z", true);
  EXPECT_EQ(shown(), "\rz" + std::string(38, ' '));
}

}  // namespace
}  // namespace sdtune::app
