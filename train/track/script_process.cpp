#include "train/track/script_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "model/base/error.h"

namespace sdtune::train {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kScriptSocket = 3;
constexpr int kAboveScriptSocket = 10;  // so that a dup2 to it is none to itself

[[noreturn]] void refuse_start(const std::string& program, int fault) {
  throw StorageError(program, std::string("cannot be started: ") + std::strerror(fault));
}

// Both ends, above the descriptor that the script gets; a child inherits none of them.
std::pair<int, int> make_sockets(const std::string& program) {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) refuse_start(program, errno);
  const int child = fcntl(pair[1], F_DUPFD_CLOEXEC, kAboveScriptSocket);
  const int fault = errno;
  close(pair[1]);
  if (child >= 0) return {pair[0], child};
  close(pair[0]);
  refuse_start(program, fault);
}

// Returns an errno. The signals have their usual meanings: this process may ignore SIGPIPE.
int spawn_script(pid_t& process, const std::vector<std::string>& words, const std::string& log, int socket) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.empty() ? "/dev/null" : log.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0666);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_adddup2(&actions, socket, kScriptSocket);
  sigset_t usual, none;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) sigaddset(&usual, number);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  const int fault = posix_spawn(&process, words.front().c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return fault;
}

bool has_ended(pid_t process) {
  return waitpid(process, nullptr, WNOHANG) != 0;
}

}  // namespace

ScriptProcess::ScriptProcess(const std::vector<std::string>& words, const std::filesystem::path& log) {
  const auto [ours, theirs] = make_sockets(words.front());
  const int fault = spawn_script(process_, words, log.string(), theirs);
  close(theirs);
  socket_ = ours;
  if (fault == 0) return;
  close(socket_);
  refuse_start(words.front(), fault);
}

ScriptProcess::~ScriptProcess() {
  close(socket_);
  if (has_ended(process_)) return;
  // One that closed the socket is about to end by itself.
  if (!is_gone_) kill(process_, SIGTERM);
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (has_ended(process_)) return;
  }
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

bool ScriptProcess::send(const Json& message, std::size_t most) {
  const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (is_gone_ || outgoing_.size() + line.size() > most) return false;
  outgoing_ += line;
  push();
  return !is_gone_;
}

std::vector<Json> ScriptProcess::replies() {
  push();
  pull();
  std::vector<Json> found;
  std::size_t begin = 0;
  for (std::size_t end; (end = incoming_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    Json reply = Json::parse(incoming_.substr(begin, end - begin), nullptr, /*allow_exceptions=*/false);
    if (reply.is_object()) found.push_back(std::move(reply));
  }
  incoming_.erase(0, begin);
  return found;
}

bool ScriptProcess::wait(double seconds) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  while (!is_gone_ && Clock::now() < end) exchange(50);
  return is_gone_;
}

void ScriptProcess::exchange(int milliseconds) {
  const short events = outgoing_.empty() ? POLLIN : POLLIN | POLLOUT;
  pollfd watched{socket_, events, 0};
  poll(&watched, 1, milliseconds);
  push();
  pull();
}

void ScriptProcess::push() {
  while (!is_gone_ && !outgoing_.empty()) {
    const ssize_t sent = ::send(socket_, outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      is_gone_ = errno != EAGAIN && errno != EWOULDBLOCK;
      return;
    }
    outgoing_.erase(0, static_cast<std::size_t>(sent));
  }
}

void ScriptProcess::pull() {
  std::array<char, 4096> bytes{};
  while (true) {
    const ssize_t got = recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) incoming_.append(bytes.data(), static_cast<std::size_t>(got));
    if (got > 0) continue;
    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) is_gone_ = true;
    return;
  }
}

}  // namespace sdtune::train
