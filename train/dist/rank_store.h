// The key-value store over which the ranks meet.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <string>
#include <vector>

#include "train/dist/rank_env.h"

namespace sdtune::train {

struct RankStore {
  c10::intrusive_ptr<c10d::Store> store;      // for the backend's own rendezvous
  c10::intrusive_ptr<c10d::Store> heartbeat;  // for Heartbeat: a connection serves one caller at a time
  std::vector<std::string> hosts;             // by rank
};

// Rank 0 opens the store, unless torchrun's agent has; the others connect. Then every rank says where it runs and with
// which configuration (lines of text), and waits for the others. Keys carry the attempt, so that a restart meets no
// stale ones. Throws ConfigError (port taken; configurations differ, naming ranks and the first lines that do) and
// PeerLostError (store or ranks not there in time).
RankStore meet_ranks(const RankEnv& env, std::chrono::milliseconds start_timeout, const std::string& configuration);

}  // namespace sdtune::train
