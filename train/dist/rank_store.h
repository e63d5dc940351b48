// The key-value store over which the ranks meet.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/base/stop_flag.h"
#include "train/dist/rank_env.h"

namespace sdtune::train {

struct RankStore {
  c10::intrusive_ptr<c10d::Store> store;      // for the backend's own rendezvous
  c10::intrusive_ptr<c10d::Store> heartbeat;  // for Heartbeat: a connection serves one caller at a time
  std::vector<std::string> hosts;             // by rank
};

struct MeetingRules {
  std::chrono::milliseconds start_timeout{};
  std::string configuration;
  const StopFlag* stop = nullptr;
};

// Rank 0 opens the store, unless torchrun's agent has; the others connect. Then every rank says where it runs and with
// which configuration (lines of text), and waits for the others. Keys carry the attempt, so that a restart meets no
// stale ones; between machines, whose launchers count for themselves, attempts may be confused. A process that finds
// its rank taken by one that beats is a mistake. By one that shows no life: the others are told that this one is lost,
// and all of them, the newcomer too, end to be restarted.
//
// Throws ConfigError (port taken; two processes of a rank; configurations differ, naming ranks and the first lines that
// do), PeerLostError (store or ranks not there in time, or lost meanwhile), what a rank said of its failure, and
// StopRequest.
RankStore meet_ranks(const RankEnv& env, const MeetingRules& rules);

// In place of meet_ranks, for a rank that ends with this error before it: the others, which would wait for it, end with
// its code, unless another process that lives is this rank. Takes at most a few seconds more than the others need to
// come, and fails in silence.
void say_failure_before_meeting(const RankEnv& env, const Error& error, const StopFlag& stop);

}  // namespace sdtune::train
