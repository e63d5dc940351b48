// How a rank ended, what that means for the others, and which of several ends is the cause.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sdtune::app {

struct RankEnd {
  std::int64_t rank = 0;
  int status = 0;            // of waitpid
  bool was_stopped = false;  // after launch had sent it a signal
};

// The exit code as a shell has it: 128 + the signal for a rank that a signal ended.
int exit_code(const RankEnd& end);

// Whether it ended by itself, and not by a signal.
bool was_orderly(const RankEnd& end);

// "ended with exit code 2", "was ended by signal 9 (Killed)"
std::string describe(const RankEnd& end);

// Whether a restart may help: a lost rank (138), or a signal that launch did not send.
bool may_retry(const RankEnd& end);

// Whether rank 0 is among `ends` and, where restarts were left, took its end for one that is followed by another start:
// it ended with 138.
bool expects_restart(const std::vector<RankEnd>& ends);

// The first failure of `ends`, which are in the order of time: of the ranks that launch had not stopped, and 138 only
// where no other rank failed otherwise, since a lost rank is noticed by all. Null when every rank ended with 0.
const RankEnd* first_cause(const std::vector<RankEnd>& ends);

}  // namespace sdtune::app
