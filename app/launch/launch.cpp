#include "app/launch/launch.h"

#include <unistd.h>

#include <filesystem>
#include <optional>

#include "app/launch/held_port.h"
#include "app/launch/old_store.h"
#include "app/launch/rank_environment.h"
#include "app/launch/rank_group.h"

namespace sdtune::app {
namespace {

std::vector<std::string> own_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

// What each attempt starts, on how many cores.
struct Program {
  std::string path;
  std::int64_t cores;
};

// Runs the ranks once.
void run_attempt(RankGroup& group, const LaunchOptions& options, const SignalReader& signals, const Program& program,
                 const std::vector<std::string>& words, std::int64_t attempt) {
  RankPlan plan{options.nproc, options.nnodes, options.node_rank, "127.0.0.1", 0, attempt, program.cores};
  plan.restarts_left = options.max_restarts - attempt;
  std::optional<HeldPort> held;
  if (options.rendezvous.empty()) {
    plan.port = held.emplace().port();
  } else {
    const Rendezvous place = parse_rendezvous(options.rendezvous);
    plan.address = place.host;
    plan.port = place.port;
  }
  for (std::int64_t local = 0; local < options.nproc; ++local) {
    group.start(options.node_rank * options.nproc + local,
                {program.path, words, rank_environment(own_environment(), plan, local), signals.before()});
  }
  group.wait();
}

}  // namespace

LaunchEnd launch_ranks(const LaunchOptions& options, const WordsOfAttempt& words, std::int64_t cores) {
  const std::chrono::milliseconds grace(static_cast<std::int64_t>(options.grace * 1000));
  // Once: a file that is replaced while ranks run has another name there.
  const Program program{std::filesystem::read_symlink("/proc/self/exe").string(), cores};
  SignalReader signals;
  for (std::int64_t attempt = 0;; ++attempt) {
    RankGroup group(signals, grace);
    run_attempt(group, options, signals, program, words(attempt), attempt);
    const RankEnd* cause = first_cause(group.ends());
    if (cause == nullptr) return {};
    const std::string of_cause = "rank " + std::to_string(cause->rank) + " " + describe(*cause);
    const bool again = group.forwarded() == 0 && may_retry(*cause);
    const bool is_left = attempt < options.max_restarts;
    if (!again || !is_left) {
      group.say(of_cause + "; " +
                (group.forwarded() != 0 ? "a signal asked for the stop"
                 : again                ? "no restart is left (--max-restarts)"
                                        : "this is not retried"));
      return {exit_code(*cause), of_cause, is_left && expects_restart(group.ends())};
    }
    group.say(of_cause + "; restart " + std::to_string(attempt + 1) + " of " + std::to_string(options.max_restarts));
    if (options.node_rank == 0) continue;  // its rank 0 has ended
    const int signal = wait_for_old_store(parse_rendezvous(options.rendezvous), signals);
    if (signal != 0) return {static_cast<int>(signal == SIGINT ? ExitCode::kInterrupted : ExitCode::kTerminated)};
  }
}

}  // namespace sdtune::app
