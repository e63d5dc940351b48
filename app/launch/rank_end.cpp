#include "app/launch/rank_end.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "model/base/error.h"

namespace sdtune::app {
namespace {

bool lost_a_peer(const RankEnd& end) {
  return WIFEXITED(end.status) && WEXITSTATUS(end.status) == static_cast<int>(ExitCode::kPeerLost);
}

}  // namespace

int exit_code(const RankEnd& end) {
  return WIFSIGNALED(end.status) ? 128 + WTERMSIG(end.status) : WEXITSTATUS(end.status);
}

bool was_orderly(const RankEnd& end) {
  return !WIFSIGNALED(end.status);
}

std::string describe(const RankEnd& end) {
  if (!WIFSIGNALED(end.status)) return "ended with exit code " + std::to_string(WEXITSTATUS(end.status));
  const int signal = WTERMSIG(end.status);
  std::string text = "was ended by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  if (signal == SIGKILL && !end.was_stopped) text += ", which the kernel also sends when memory runs out";
  return text;
}

bool may_retry(const RankEnd& end) {
  return lost_a_peer(end) || (WIFSIGNALED(end.status) && !end.was_stopped);
}

bool expects_restart(const std::vector<RankEnd>& ends) {
  return std::any_of(ends.begin(), ends.end(), [](const RankEnd& end) { return end.rank == 0 && lost_a_peer(end); });
}

const RankEnd* first_cause(const std::vector<RankEnd>& ends) {
  const RankEnd* lost = nullptr;
  const RankEnd* stopped = nullptr;
  for (const RankEnd& end : ends) {
    if (exit_code(end) == 0) continue;
    if (end.was_stopped) {
      if (stopped == nullptr) stopped = &end;
    } else if (!lost_a_peer(end)) {
      return &end;
    } else if (lost == nullptr) {
      lost = &end;
    }
  }
  return lost != nullptr ? lost : stopped;
}

}  // namespace sdtune::app
