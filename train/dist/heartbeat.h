// The thread by which a rank shows the others that it lives, and sees what they show. It alone talks to the store after
// the ranks have met, so a store that does not answer stops this thread alone.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "train/dist/peer_watch.h"
#include "train/dist/rank_env.h"
#include "train/dist/rank_store.h"

namespace sdtune::train {

class Heartbeat final : public PeerWatch {
 public:
  // Keeps the store itself too: the rank that serves it must do so for as long as the others may ask how it ended.
  Heartbeat(RankStore met, const RankEnv& env);
  // Says that this rank ends in order. The rank whose process holds the store stays a few seconds for the others to do
  // so as well: its end takes the store away.
  ~Heartbeat() override;
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  void note_progress() override;
  bool wait_for_all(std::chrono::milliseconds silence) override;  // 3 s at least
  std::string gone(std::chrono::milliseconds silence) override;   // likewise
  std::string find_lost() override;
  void say_failure(const Error& error) override;
  std::optional<RankFailure> failure() override;

  std::string name_of(std::int64_t rank) const;  // "rank 2 (host)"

 private:
  struct Seen;
  struct Board;
  static void beat(const std::shared_ptr<Board>& board, const c10::intrusive_ptr<c10d::Store>& store,
                   std::int64_t rank);

  bool holds_store() const { return env_.rank == 0 && !env_.agent_store; }
  std::string holder() const;  // of the store
  std::string silent_ranks(std::chrono::milliseconds silence, std::chrono::milliseconds ended) const;
  std::string blame_by_waiting(std::unique_lock<std::mutex>& lock) const;
  std::int64_t living_ranks() const;  // with this one
  std::string names(const std::vector<std::int64_t>& ranks) const;

  RankEnv env_;
  RankStore met_;
  std::shared_ptr<Board> board_;  // also the thread's, which may outlive this
  std::thread thread_;
};

}  // namespace sdtune::train
