#include "train/prove/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <thread>

#include "model/base/error.h"
#include "model/files/file_system.h"

namespace sdtune::train {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{20};
constexpr std::size_t kLongest = 300;

// The environment of this process with the child's own settings, as NAME=VALUE.
std::vector<std::string> environment_of(const Child& child) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : child.environment) variables[name] = value;
  std::vector<std::string> texts;
  for (const auto& [name, value] : variables) texts.push_back(name + "=" + value);
  return texts;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

int open_log(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) throw StorageError(file.string(), std::string("cannot be written: ") + std::strerror(errno));
  return descriptor;
}

// All memory is made before the fork: other threads of this process may hold the allocator's locks.
pid_t start(const Child& child) {
  const std::vector<std::string> variables = environment_of(child);
  const std::vector<char*> words = pointers(child.words), environment = pointers(variables);
  const int log = open_log(child.log);
  const int output = child.output.empty() ? log : open_log(child.output);
  const pid_t parent = getpid(), process = fork();
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);  // it died in between
    setpgid(0, 0);
    dup2(output, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execve(words.front(), words.data(), environment.data());
    _exit(127);
  }
  const int fault = errno;
  if (output != log) close(output);
  close(log);
  if (process < 0) throw StorageError(child.words.front(), std::string("cannot be started: ") + std::strerror(fault));
  return process;
}

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The started children; what is left of them when this goes is killed.
class Started {
 public:
  ~Started() {
    signal_all(SIGKILL);
    for (pid_t& process : processes_) {
      while (process > 0 && waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
  void add(const Child& child) {
    processes_.push_back(start(child));
    codes.push_back(-1);
  }
  void signal_all(int signal) const {
    for (const pid_t process : processes_) {
      if (process > 0) kill(process, signal);
    }
  }
  // Whether one still runs.
  bool poll() {
    bool runs = false;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (processes_[i] <= 0) continue;
      int status = 0;
      const pid_t ended = waitpid(processes_[i], &status, WNOHANG);
      if (ended == processes_[i] || (ended < 0 && errno == ECHILD)) {
        codes[i] = ended > 0 ? exit_code(status) : static_cast<int>(ExitCode::kBug);
        processes_[i] = 0;
      }
      runs = runs || processes_[i] > 0;
    }
    return runs;
  }
  std::vector<int> codes;

 private:
  std::vector<pid_t> processes_;
};

}  // namespace

bool ChildrenEnd::all_done() const {
  return std::all_of(codes.begin(), codes.end(), [](int code) { return code == 0; });
}

ChildrenEnd run_children(const std::vector<Child>& children, std::chrono::duration<double> limit, const StopFlag& stop,
                         std::chrono::duration<double> patience) {
  const Clock::time_point begin = Clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - begin); };
  Started started;
  ChildrenEnd end;
  for (const Child& child : children) started.add(child);
  std::chrono::duration<double> asked_at{-1};
  while (started.poll()) {
    if (asked_at.count() < 0 && (passed() > limit || stop.signal() != 0)) {
      end.stopped = stop.signal() != 0;
      end.out_of_time = !end.stopped;
      asked_at = passed();
      started.signal_all(SIGTERM);
    }
    if (asked_at.count() >= 0 && passed() > asked_at + patience) started.signal_all(SIGKILL);
    std::this_thread::sleep_for(kPause);
  }
  end.codes = started.codes;
  end.seconds = passed().count();
  return end;
}

std::string last_words(const std::filesystem::path& log) {
  std::string text;
  try {
    text = read_file(log);
  } catch (const Error&) {
    return "";
  }
  std::string last;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t line_end = std::min(text.find_first_of("\r\n", begin), text.size());
    const std::string line = text.substr(begin, line_end - begin);
    if (line.find_first_not_of(" \t") != std::string::npos) last = line;
    begin = line_end + 1;
  }
  return last.substr(0, kLongest);
}

}  // namespace sdtune::train
