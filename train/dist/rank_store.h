// The key-value store that all ranks share, used to meet, to show that one is alive, and to find out who is not.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "train/dist/rank_env.h"

namespace sdtune::train {

class RankStore {
 public:
  // Rank 0 opens the store, unless torchrun's agent has; the others connect. Then every rank says where it runs and
  // with which configuration, and waits for the others. Keys carry the attempt, so that a restart meets no stale ones.
  // Throws ConfigError (port taken, configurations differ) and PeerLostError (store or ranks not there in time).
  RankStore(const RankEnv& env, std::chrono::milliseconds start_timeout, const std::string& config_hash);
  ~RankStore();
  RankStore(const RankStore&) = delete;
  RankStore& operator=(const RankStore&) = delete;

  // For the backend's own rendezvous.
  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

  // Counted, so that a rank that does not answer shows as behind the others.
  void note_progress() { progress_.fetch_add(1, std::memory_order_relaxed); }

  // Waits until every rank has come here, however long that takes: gives up (false) only when a rank that is still
  // missing has ended or has shown no life for `silence` (3 s at least), or when another rank has found one lost.
  // Every rank calls it equally often.
  bool wait_for_all(std::chrono::milliseconds silence);

  // Who is lost, after a collective failed: "rank 2 (host)", more than one separated by commas. Takes up to kSilence
  // unless another rank has already found out. The rank that holds the store stays until the others have asked.
  std::string find_lost();

 private:
  struct Beat {
    std::string alive;      // changes while the rank lives
    std::int64_t progress;  // collectives begun
  };

  struct LastSeen {
    std::string alive;
    std::chrono::steady_clock::time_point since;
  };

  void meet(std::chrono::milliseconds timeout, const std::string& config_hash);
  void beat_until_stopped(const std::stop_token& stop);
  std::vector<Beat> read_beats();
  bool is_gone(std::int64_t rank, LastSeen& last, std::chrono::milliseconds silence);
  std::string name_of(std::int64_t rank) const;
  std::string silent_or_behind();
  void compare_configurations();
  void wait_for_count(const std::string& counter, std::int64_t count);  // if this rank holds the store

  RankEnv env_;
  c10::intrusive_ptr<c10d::Store> store_;      // for the backend and for finding out
  c10::intrusive_ptr<c10d::Store> heartbeat_;  // of the heartbeat's thread: a connection serves one caller at a time
  std::vector<std::string> hosts_;             // by rank
  std::int64_t waits_ = 0;                     // calls of wait_for_all
  std::atomic<std::int64_t> progress_{0};
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread heart_;
};

}  // namespace sdtune::train
