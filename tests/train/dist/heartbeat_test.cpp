// More ranks than read each other one by one, over a store that counts what is read of it.
#include "train/dist/heartbeat.h"

#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <atomic>
#include <future>
#include <thread>

#include "train/dist/beat_reader.h"

namespace sdtune::train {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kRanks = 40;

class CountingStore final : public c10d::HashStore {
 public:
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override {
    ++reads_of_all;
    return HashStore::multiGet(keys);
  }
  using Store::set;  // of texts
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override {
    if (key == "all_beats") ++summaries;
    HashStore::set(key, value);
  }
  std::atomic<std::int64_t> reads_of_all = 0, summaries = 0;
};

class Heartbeats : public testing::Test {
 protected:
  // Of the ranks but those of `silent`, which have shown themselves once; the store is another process's.
  void start(const std::vector<std::int64_t>& silent) {
    for (const std::int64_t rank : silent) store_->set(beat_key(rank), std::string("1 0 0"));
    for (std::int64_t rank = 0; rank < kRanks; ++rank) {
      if (std::find(silent.begin(), silent.end(), rank) != silent.end()) continue;
      RankEnv env;
      env.rank = rank;
      env.world_size = kRanks;
      env.agent_store = true;
      RankStore met{store_, store_, std::vector<std::string>(kRanks, "host")};
      beats_[rank] = std::make_unique<Heartbeat>(std::move(met), env);
    }
  }
  // Each ends in its own thread, as ranks do.
  void TearDown() override {
    std::vector<std::future<void>> ends;
    for (auto& [rank, beat] : beats_) ends.push_back(std::async(std::launch::async, [&beat = beat] { beat.reset(); }));
  }

  c10::intrusive_ptr<CountingStore> store_ = c10::make_intrusive<CountingStore>();
  std::map<std::int64_t, std::unique_ptr<Heartbeat>> beats_;
};

TEST_F(Heartbeats, OneOfManyRanksReadsTheOthers) {
  start({});
  std::vector<std::future<bool>> waits;
  for (auto& [rank, beat] : beats_) {
    waits.push_back(std::async(std::launch::async, [&beat = beat] { return beat->wait_for_all(20s); }));
  }
  for (std::future<bool>& wait : waits) EXPECT_TRUE(wait.get());
  EXPECT_EQ(beats_[5]->gone(3s), "");
  const std::int64_t summaries = store_->summaries;
  EXPECT_GE(summaries, 1);
  // Rank 0 alone, which may be between reading and writing. The mutant: each rank reads all, forty times as often.
  EXPECT_LE(store_->reads_of_all, summaries + 2);
}

TEST_F(Heartbeats, ASilentRankIsNamed) {
  start({7});
  std::this_thread::sleep_for(4s);
  EXPECT_EQ(beats_[5]->gone(3s), "rank 7 (host)");
  EXPECT_EQ(beats_[0]->gone(3s), "rank 7 (host)");
}

TEST_F(Heartbeats, ASilentRankIsNamedWhereTheOneThatReadsIsSilentToo) {
  start({0, 7});
  std::this_thread::sleep_for(6s);
  EXPECT_EQ(beats_[5]->gone(3s), "rank 0 (host), rank 7 (host)");
}

}  // namespace
}  // namespace sdtune::train
