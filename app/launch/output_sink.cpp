#include "app/launch/output_sink.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace sdtune::app {
namespace {

// A pipe that is ready takes this much without a wait. Its file stays a waiting one: others may share it.
constexpr std::size_t kReadyBytes = PIPE_BUF;

}  // namespace

void OutputSink::add(std::string_view text) {
  waiting_ += text;
  flush();
}

bool OutputSink::takes_bytes(int wait_ms) const {
  pollfd file{file_, POLLOUT, 0};
  return ::poll(&file, 1, wait_ms) == 1;
}

void OutputSink::write_part() {
  const ssize_t written = ::write(file_, waiting_.data(), std::min(waiting_.size(), kReadyBytes));
  if (written < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (written <= 0) {
    waiting_.clear();
  } else {
    waiting_.erase(0, static_cast<std::size_t>(written));
  }
}

void OutputSink::flush() {
  while (!waiting_.empty() && takes_bytes(0)) write_part();
}

bool OutputSink::finish(std::chrono::milliseconds limit) {
  while (!waiting_.empty() && takes_bytes(static_cast<int>(limit.count()))) write_part();
  const bool is_done = waiting_.empty();
  waiting_.clear();
  return is_done;
}

}  // namespace sdtune::app
