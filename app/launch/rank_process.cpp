#include "app/launch/rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "model/base/error.h"

namespace sdtune::app {
namespace {

constexpr std::size_t kPart = 64 * 1024;
constexpr int kUnknownEnd = static_cast<int>(ExitCode::kBug) << 8;  // a status of waitpid: exit code 1

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void refuse(const std::string& what) {
  throw StorageError("launch", what + ": " + std::strerror(errno), "ulimit -n and -u bound files and processes");
}

// In the child between fork and exec: only calls that are async-signal-safe.
[[noreturn]] void become_rank(const RankStart& start, char** words, char** environment, const int* ends, pid_t parent) {
  ::setpgid(0, 0);  // Ctrl-C of the terminal reaches launch alone, which hands it on once
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(128 + SIGKILL);  // launch ended before the line above
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0 || ::dup2(ends[0], STDOUT_FILENO) < 0 ||
      ::dup2(ends[1], STDERR_FILENO) < 0) {
    ::_exit(127);
  }
  if (nothing > STDERR_FILENO) ::close(nothing);
  ::sigprocmask(SIG_SETMASK, &start.signals, nullptr);
  ::execve(start.program.c_str(), words, environment);
  ::_exit(127);
}

}  // namespace

RankProcess::RankProcess(std::int64_t rank, const RankStart& start)
    : rank_(rank),
      lines_{OutputLines("[rank " + std::to_string(rank) + "] "), OutputLines("[rank " + std::to_string(rank) + "] ")} {
  std::vector<std::string> all{start.program};
  all.insert(all.end(), start.words.begin(), start.words.end());
  const std::vector<char*> words = pointers(all);
  const std::vector<char*> environment = pointers(start.environment);
  int ends[2] = {-1, -1};
  for (int stream = 0; stream < 2; ++stream) {
    int both[2];
    if (::pipe2(both, O_CLOEXEC) != 0) refuse("no pipe for a rank");
    ::fcntl(both[0], F_SETFL, O_NONBLOCK);
    pipes_[stream] = both[0];
    ends[stream] = both[1];
  }
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0)
    become_rank(start, const_cast<char**>(words.data()), const_cast<char**>(environment.data()), ends, parent);
  const int reason = errno;
  ::close(ends[0]);
  ::close(ends[1]);
  errno = reason;
  if (pid_ < 0) refuse("no process for a rank");
  ::setpgid(pid_, pid_);  // whoever comes first; it must be there before a signal is sent to it
  runs_ = true;
}

RankProcess::~RankProcess() {
  if (runs_) {
    ::kill(-pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  for (const int file : pipes_) {
    if (file >= 0) ::close(file);
  }
}

void RankProcess::send(int signal) {
  if (!runs_) return;
  signalled_ = true;
  // Only SIGKILL to what it has started: a program of its own need not know the others.
  ::kill(signal == SIGKILL ? -pid_ : pid_, signal);
}

void RankProcess::stop() {
  if (!runs_) return;
  signalled_ = true;
  // Where the queue is full (ulimit -i) the rank ends as after any SIGTERM.
  if (::sigqueue(pid_, SIGTERM, sigval{}) != 0) ::kill(pid_, SIGTERM);
}

bool RankProcess::reap(int& status) {
  if (!runs_) return false;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    if (errno != ECHILD) return false;
    status = kUnknownEnd;  // the kernel has dropped it; the number may be another process's by now
    runs_ = false;
    return true;
  }
  if (info.si_pid == 0) return false;
  ::kill(-pid_, SIGKILL);  // while the number still is its own
  ::waitpid(pid_, &status, 0);
  runs_ = false;
  return true;
}

void RankProcess::relay(int stream, OutputSink& sink) {
  char bytes[kPart];
  while (pipes_[stream] >= 0 && sink.has_room()) {
    const ssize_t got = ::read(pipes_[stream], bytes, sizeof(bytes));
    if (got > 0) {
      sink.add(lines_[stream].add({bytes, static_cast<std::size_t>(got)}));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    ::close(pipes_[stream]);
    pipes_[stream] = -1;
  }
}

void RankProcess::finish_output(int stream, OutputSink& sink) {
  relay(stream, sink);
  sink.add(lines_[stream].finish());
}

}  // namespace sdtune::app
