#include "train/data/face_program.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "model/base/error.h"
#include "model/files/install_paths.h"

namespace sdtune::train {

namespace {

constexpr const char* kProgram = "sdtune-faces";

[[noreturn]] void fail(const std::string& why) {
  throw DataError(kProgram, why);
}

// The two ends of a connection of which only `ends[0]` stays in this process.
struct SpawnSetup {
  SpawnSetup(int end) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, end, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, end, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);  // a group of its own
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

}  // namespace

FaceProgram::FaceProgram(FaceProgramOptions options, std::vector<std::string> arguments)
    : options_(std::move(options)), arguments_(std::move(arguments)) {
  if (options_.program.empty()) options_.program = find_companion_program(kProgram);
  if (options_.program.empty()) fail("is not installed beside sdtune: this build has no face detection");
  start();
}

FaceProgram::~FaceProgram() {
  stop();
}

void FaceProgram::start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail(std::strerror(errno));
  const std::string program = options_.program.string();
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const std::string& word : arguments_) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const SpawnSetup setup(ends[1]);
  const int status = posix_spawn(&process_, program.c_str(), &setup.actions, &setup.attributes, words.data(), environ);
  close(ends[1]);
  socket_ = ends[0];
  if (status != 0) {
    process_ = -1;
    stop();
    fail(std::string("cannot be started: ") + std::strerror(status));
  }
  try {
    expect_ready();
  } catch (const Error&) {
    stop();
    throw;
  }
}

void FaceProgram::stop() noexcept {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  received_.clear();
  if (process_ < 0) return;
  kill(process_, SIGKILL);  // it holds nothing that could be lost, and SIGTERM may be held up
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

void FaceProgram::expect_ready() {
  const Json greeting = Json::parse(read_line(Clock::now() + options_.patience), nullptr, /*allow_exceptions=*/false);
  if (greeting.is_object() && greeting.contains("ready")) return;
  const bool says_why = greeting.is_object() && greeting.contains("error") && greeting["error"].is_string();
  fail(says_why ? greeting["error"].get<std::string>() : "cannot be used");
}

Json FaceProgram::ask(Json header, std::string_view bytes) {
  if (process_ < 0) start();
  try {
    return exchange(std::move(header), bytes);
  } catch (const Error&) {
    stop();
    throw;
  }
}

Json FaceProgram::exchange(Json header, std::string_view bytes) {
  const Clock::time_point deadline = Clock::now() + options_.patience;
  header["id"] = ++requests_;
  send(header.dump() + "\n", deadline);
  send(bytes, deadline);
  Json answer = Json::parse(read_line(deadline), nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) fail("gave an answer that is no JSON object");
  if (answer.contains("error") && answer["error"].is_string()) fail(answer["error"].get<std::string>());
  if (!answer.contains("id") || answer["id"] != requests_) {
    fail("answered another request (got id " + answer.value("id", Json()).dump() + "; expected " +
         std::to_string(requests_) + ")");
  }
  return answer;
}

void FaceProgram::wait_until_ready(short events, Clock::time_point deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd entry = {socket_, events, 0};
    const int count = poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (count > 0) return;
    if (count == 0) {
      const std::chrono::duration<double> patience = options_.patience;
      fail("does not answer within " + std::to_string(std::llround(patience.count())) + " s");
    }
    if (errno != EINTR) fail(std::strerror(errno));
  }
}

void FaceProgram::send(std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    wait_until_ready(POLLOUT, deadline);
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) return;  // it has ended: what it said last is read, and names the cause
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string FaceProgram::read_line(Clock::time_point deadline) {
  for (;;) {
    const std::size_t end = received_.find('\n');
    if (end != std::string::npos) {
      const std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    wait_until_ready(POLLIN, deadline);
    char block[4096];
    const ssize_t count = recv(socket_, block, sizeof(block), MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) fail(std::string("does not answer: ") + std::strerror(errno));
    if (count == 0) fail("has ended without an answer");
    received_.append(block, static_cast<std::size_t>(count));
  }
}

}  // namespace sdtune::train
