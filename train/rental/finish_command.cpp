#include "train/rental/finish_command.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <vector>

namespace sdtune::train {

namespace {

constexpr const char* kShell = "/bin/sh";

std::vector<std::string> environment_with(const RunOutcome& outcome) {
  const bool has_folder = !outcome.folder.empty();
  const std::vector<std::string> own = {
      "SDTUNE_EXIT_CODE=" + std::to_string(outcome.exit_code), "SDTUNE_CAUSE=" + outcome.cause,
      "SDTUNE_RUN=" + (has_folder ? std::filesystem::absolute(outcome.folder).lexically_normal().string() : "")};
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name = std::string_view(*entry).substr(0, std::string_view(*entry).find('=') + 1);
    bool is_ours = false;
    for (const std::string& one : own) is_ours = is_ours || one.starts_with(name);
    if (!is_ours) entries.emplace_back(*entry);
  }
  entries.insert(entries.end(), own.begin(), own.end());
  return entries;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// The process ignores SIGPIPE, which its children would inherit. Returns an errno.
int spawn(pid_t& child, const std::vector<std::string>& words, const std::vector<std::string>& environment) {
  posix_spawnattr_t attributes;
  if (const int error = posix_spawnattr_init(&attributes); error != 0) return error;
  sigset_t plain, none;
  sigemptyset(&plain);
  sigemptyset(&none);
  sigaddset(&plain, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &plain);
  posix_spawnattr_setsigmask(&attributes, &none);
  // In a session of its own: what ends a rank with all that it has started, as `sdtune launch` does, must not end a
  // copy of the run, or the command that gives the machine back.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  const int error =
      posix_spawn(&child, kShell, nullptr, &attributes, pointers(words).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

std::optional<Problem> run_finish_command(const std::string& command, const RunOutcome& outcome) {
  if (command.empty()) return std::nullopt;
  pid_t child = 0;
  if (const int error = spawn(child, {kShell, "-c", command}, environment_with(outcome)); error != 0) {
    return Problem{"on_finish", std::string("cannot be started: ") + std::strerror(error), ""};
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Problem{"on_finish", std::string("is lost: ") + std::strerror(errno), ""};
  }
  const std::string hint = "the run itself is as it should be";
  if (WIFSIGNALED(status)) {
    return Problem{"on_finish", "was ended by signal " + std::to_string(WTERMSIG(status)), hint};
  }
  if (WEXITSTATUS(status) == 0) return std::nullopt;
  return Problem{"on_finish", "ended with exit code " + std::to_string(WEXITSTATUS(status)), hint};
}

}  // namespace sdtune::train
