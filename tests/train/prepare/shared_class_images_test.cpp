// Ranks as threads, each with a folder of its own in which the others' files appear late, or otherwise, or never.
#include "train/prepare/shared_class_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "model/base/error.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::int64_t kRanks = 2;

// Where the threads exchange their texts.
struct Table {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::vector<std::string>> rounds;
};

class ThreadGroup final : public ProcessGroup {
 public:
  ThreadGroup(std::int64_t rank, Table& table) : rank_(rank), table_(table) {}
  std::int64_t rank() const override { return rank_; }
  std::int64_t world_size() const override { return kRanks; }
  std::unique_ptr<PendingReduce> start_all_reduce_sum(torch::Tensor) override { return nullptr; }
  void broadcast(torch::Tensor, std::int64_t) override {}
  void barrier() override { gather_text(""); }
  std::vector<std::string> gather_text(const std::string& text) override {
    std::unique_lock lock(table_.mutex);
    const std::size_t round = round_++;
    if (table_.rounds.size() <= round) table_.rounds.resize(round + 1);
    // By rank: the second one to come puts its own where it belongs.
    std::vector<std::string>& texts = table_.rounds[round];
    texts.insert(rank_ == 0 ? texts.begin() : texts.end(), text);
    table_.changed.notify_all();
    table_.changed.wait(lock, [&] { return table_.rounds[round].size() == kRanks; });
    return table_.rounds[round];
  }

 private:
  std::int64_t rank_;
  Table& table_;
  std::size_t round_ = 0;
};

// Runs `body` as both ranks; returns what each threw, "" for nothing.
std::vector<std::string> run_ranks(const std::function<void(ProcessGroup&)>& body) {
  Table table;
  std::vector<std::string> errors(kRanks);
  std::vector<std::thread> threads;
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadGroup group(rank, table);
      try {
        body(group);
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(rank)] = error.problems().front().line();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

class SharedClassImages : public testing::Test {
 protected:
  fs::path folder_of(std::int64_t rank) {
    const fs::path folder = scratch_.path() / ("rank" + std::to_string(rank));
    fs::create_directories(folder);
    return folder;
  }
  void write(std::int64_t rank, const std::string& name, const std::string& content) {
    write_file_atomically(real_file_system(), folder_of(rank) / name, content);
  }
  // Rank 0 found "a" and made "b", rank 1 made "c".
  ClassImagePlan plan_of(const ProcessGroup& group) {
    const fs::path folder = folder_of(group.rank());
    return {{folder / "a", folder / "c", folder / "b"}, {1, 2}, 1};
  }
  void write_own() {
    write(0, "a", "A");
    write(0, "b", "B");
    write(1, "c", "C");
  }

  test::ScratchFolder scratch_;
};

TEST_F(SharedClassImages, AreWaitedForByContent) {
  write_own();
  write(1, "b", "half of B");
  std::thread network([&] {
    std::this_thread::sleep_for(300ms);
    for (const char* name : {"a", "b"}) write(1, name, name == std::string("a") ? "A" : "B");
    write(0, "c", "C");
  });
  const std::vector<std::string> errors =
      run_ranks([&](ProcessGroup& group) { await_class_images(group, plan_of(group), 60s); });
  network.join();
  EXPECT_THAT(errors, testing::Each(""));
}

TEST_F(SharedClassImages, ThatStayDifferentAreNamedOnEveryRank) {
  write_own();
  write(0, "c", "C");
  write(1, "a", "A");
  write(1, "b", "not B");
  const std::vector<std::string> errors =
      run_ranks([&](ProcessGroup& group) { await_class_images(group, plan_of(group), 400ms); });
  const std::string line = (folder_of(1) / "b").string() + ": rank 1 does not see this class image";
  EXPECT_THAT(errors, testing::Each(testing::StartsWith(line)));
  EXPECT_THAT(errors, testing::Each(testing::HasSubstr("(1 such files)")));
}

TEST_F(SharedClassImages, ArePlannedByTheFirstRank) {
  std::mutex mutex;
  std::vector<ClassImagePlan> plans(kRanks);
  const std::vector<std::string> errors = run_ranks([&](ProcessGroup& group) {
    const ClassImagePlan plan = shared_plan(group, {"a photo", folder_of(0), 3}, {"a photo", 1, "hash", 64, {}});
    const std::lock_guard lock(mutex);
    plans[static_cast<std::size_t>(group.rank())] = plan;
  });
  EXPECT_THAT(errors, testing::Each(""));
  EXPECT_EQ(plans[0].files.size(), 3u);
  EXPECT_EQ(plans[0].files, plans[1].files);
  EXPECT_EQ(plans[0].missing, plans[1].missing);
}

}  // namespace
}  // namespace sdtune::train
