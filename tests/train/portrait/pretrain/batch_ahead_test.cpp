#include "train/portrait/pretrain/batch_ahead.h"

#include <gtest/gtest.h>

#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace sdtune::train::pretrain {
namespace {

// Which steps were prepared, and on which threads.
struct Record {
  std::mutex mutex;
  std::vector<std::uint64_t> steps;
  std::vector<std::thread::id> threads;

  std::uint64_t prepare(std::uint64_t step) {
    const std::lock_guard lock(mutex);
    steps.push_back(step);
    threads.push_back(std::this_thread::get_id());
    if (step == 9) throw std::runtime_error("step 9");
    return step * 10;
  }
  BatchAhead<std::uint64_t> batches(std::uint64_t ready_until) {
    return {[this](std::uint64_t step) { return prepare(step); },
            [ready_until](std::uint64_t step) { return step < ready_until; }};
  }
};

TEST(BatchAhead, PreparesEachStepOnceAndTheNextOneOnAnotherThread) {
  Record record;
  {
    BatchAhead<std::uint64_t> batches = record.batches(3);
    for (std::uint64_t step = 0; step < 4; ++step) EXPECT_EQ(batches.take(step, true), step * 10);
  }
  EXPECT_EQ(record.steps, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  const std::thread::id own = std::this_thread::get_id();
  EXPECT_EQ(record.threads[0], own);
  EXPECT_NE(record.threads[1], own);
  EXPECT_NE(record.threads[2], own);
  EXPECT_EQ(record.threads[3], own);  // it was not ready, so it was waited for where it was needed
}

TEST(BatchAhead, PreparesNothingAheadWhereItMayNot) {
  Record record;
  {
    BatchAhead<std::uint64_t> batches = record.batches(100);
    EXPECT_EQ(batches.take(0, false), 0u);
  }
  EXPECT_EQ(record.steps, std::vector<std::uint64_t>{0});
}

TEST(BatchAhead, DropsAnotherStepsBatch) {
  Record record;
  BatchAhead<std::uint64_t> batches = record.batches(100);
  batches.take(0, true);
  EXPECT_EQ(batches.take(5, false), 50u);
  EXPECT_EQ(batches.take(6, false), 60u);
}

TEST(BatchAhead, ThrowsWhatPreparingThrewWithTheStepThatNeedsIt) {
  Record record;
  BatchAhead<std::uint64_t> batches = record.batches(100);
  EXPECT_EQ(batches.take(8, true), 80u);
  EXPECT_THROW(batches.take(9, true), std::runtime_error);
}

}  // namespace
}  // namespace sdtune::train::pretrain
