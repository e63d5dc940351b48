#include "app/ui/hangup.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <string>

namespace sdtune::app {
namespace {

constexpr std::array kStreams = {STDOUT_FILENO, STDERR_FILENO};

// What the handler needs, ready before there is one: it may only call what is async-signal-safe.
char log_path[PATH_MAX];
bool was_terminal[kStreams.size()];
std::atomic<bool> moved{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may use only lock-free atomics");

// The log, opened with the folders above it; /dev/null where that fails.
int open_log() {
  char folder[PATH_MAX];
  std::strcpy(folder, log_path);  // NOLINT: of the same size
  for (char* slash = std::strchr(folder + 1, '/'); slash != nullptr; slash = std::strchr(slash + 1, '/')) {
    *slash = '\0';
    ::mkdir(folder, 0777);
    *slash = '/';
  }
  const int file = ::open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  return file >= 0 ? file : ::open("/dev/null", O_WRONLY | O_CLOEXEC);
}

void move_output() {
  if (moved.exchange(true)) return;
  const int error = errno;
  const int file = open_log();
  for (std::size_t i = 0; i < kStreams.size() && file >= 0; ++i) {
    if (was_terminal[i]) ::dup2(file, kStreams[i]);
  }
  if (file > STDERR_FILENO) ::close(file);
  errno = error;
}

void on_hangup(int) {
  move_output();
}

// Whether the other side of a stream that was a terminal is closed.
bool is_dead(int stream) {
  pollfd request = {stream, POLLOUT, 0};
  return ::poll(&request, 1, 0) == 1 && (request.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace

void keep_output_after_hangup(const std::filesystem::path& log) {
  const std::string path = std::filesystem::absolute(log).lexically_normal().string();
  if (path.size() >= sizeof(log_path)) return;  // open() would refuse it, too
  path.copy(log_path, path.size());
  log_path[path.size()] = '\0';
  for (std::size_t i = 0; i < kStreams.size(); ++i) was_terminal[i] = ::isatty(kStreams[i]) == 1;
  struct sigaction old = {};
  sigaction(SIGHUP, nullptr, &old);
  if ((old.sa_flags & SA_SIGINFO) == 0 && old.sa_handler == SIG_IGN) return;
  struct sigaction action = {};
  action.sa_handler = on_hangup;
  action.sa_flags = SA_RESTART | SA_ONSTACK;  // the stack is that of install_stop_signals
  sigemptyset(&action.sa_mask);
  sigaction(SIGHUP, &action, nullptr);
}

bool lost_terminal() {
  if (log_path[0] == '\0') return false;
  for (std::size_t i = 0; i < kStreams.size() && !moved.load(); ++i) {
    if (was_terminal[i] && is_dead(kStreams[i])) move_output();
  }
  return moved.load();
}

}  // namespace sdtune::app
