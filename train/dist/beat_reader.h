// How a rank reads the heartbeats of all ranks (Heartbeat) from the store.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sdtune::train {

// The store's key of a rank's heartbeat.
std::string beat_key(std::int64_t rank);

// Up to 16 ranks each read the keys of all. More would keep the store's one thread busy (512 ranks, two reads of 512
// keys a second each, 2 ms a read on an EPYC): there rank 0 alone reads them and writes what it read under one key,
// which the others read. Where that key does not change, since rank 0 is stopped or lost and the store is another
// process's, they read all keys themselves.
class BeatReader {
 public:
  static constexpr std::int64_t kDirectRanks = 16;
  static constexpr std::chrono::milliseconds kStale{1500};  // three beats

  BeatReader(std::int64_t rank, std::int64_t ranks);

  // What each rank shows, by rank; nothing where rank 0 has not read the others yet. Throws what the store throws.
  std::vector<std::string> read(c10d::Store& store);

 private:
  std::vector<std::string> read_each(c10d::Store& store) const;

  std::int64_t rank_;
  std::vector<std::string> keys_;
  std::string summary_;
  std::chrono::steady_clock::time_point changed_ = std::chrono::steady_clock::now();
};

}  // namespace sdtune::train
