#include "model/core/chunk_threads.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "model/core/tensor_memory.h"

namespace sdtune::model {
namespace {

class ChunkThreadsTest : public testing::Test {
 protected:
  ChunkThreadsTest() { at::set_num_threads(3); }
  ~ChunkThreadsTest() override { at::set_num_threads(before_); }

 private:
  int before_ = at::get_num_threads();
};

TEST_F(ChunkThreadsTest, RangesCoverTheSamplesInOrderAndDifferByOneAtMost) {
  for (std::int64_t samples = 1; samples < 40; ++samples) {
    for (std::int64_t chunks = 1; chunks <= samples; ++chunks) {
      std::int64_t next = 0;
      for (std::int64_t index = 0; index < chunks; ++index) {
        const ChunkRange range = chunk_range(samples, chunks, index);
        EXPECT_EQ(range.begin, next);
        EXPECT_GE(range.size(), samples / chunks);
        EXPECT_LE(range.size(), (samples + chunks - 1) / chunks);
        next = range.end;
      }
      EXPECT_EQ(next, samples);
    }
  }
}

TEST_F(ChunkThreadsTest, AsManyChunksAsThreadsWhereEachHasASample) {
  EXPECT_EQ(chunk_count(8, torch::kCPU), 3);
  EXPECT_EQ(chunk_count(3, torch::kCPU), 3);
  EXPECT_EQ(chunk_count(2, torch::kCPU), 1);
  EXPECT_EQ(chunk_count(8, torch::Device(torch::kCUDA, 0)), 1);
  at::set_num_threads(1);
  EXPECT_EQ(chunk_count(8, torch::kCPU), 1);
}

// A team of OpenMP's within each chunk would be more threads than cores, and slower than no chunks.
TEST_F(ChunkThreadsTest, EachHasAThreadOfItsOwnAndNoOther) {
  std::vector<std::thread::id> threads(3);
  std::vector<std::int64_t> numbers(3), counts(3), inner(3);
  std::vector<int> pool(3), widest(3);
  run_chunks(3, [&](std::int64_t index) {
    const auto i = static_cast<std::size_t>(index);
    threads[i] = std::this_thread::get_id();
    numbers[i] = current_chunk();
    inner[i] = chunk_count(8, torch::kCPU);
    std::atomic<int> calls = 0;
    at::parallel_for(0, 1 << 20, 1, [&](std::int64_t, std::int64_t) { ++calls; });
    pool[i] = at::get_num_threads();
    widest[i] = calls;
  });
  EXPECT_EQ(std::set(threads.begin(), threads.end()).size(), 3U);
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(inner, (std::vector<std::int64_t>{1, 1, 1}));
  EXPECT_EQ(pool, (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(widest, (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(at::get_num_threads(), 3) << "the caller keeps its own";
  EXPECT_EQ(current_chunk(), 0);
  int later = 0;
  std::thread([&] { later = at::get_num_threads(); }).join();
  EXPECT_EQ(later, 3) << "and so do threads that begin afterwards";
}

TEST_F(ChunkThreadsTest, TheCallersModesHoldInEach) {
  const bool reuses = [] {
    const TensorMemoryScope scope;
    return TensorMemoryScope::is_active();  // not under the address sanitizer
  }();
  for (const bool with_gradients : {false, true}) {
    const torch::AutoGradMode mode(with_gradients);
    std::vector<int> gradients(3), memory(3);
    {
      const TensorMemoryScope scope;
      run_chunks(3, [&](std::int64_t index) {
        gradients[static_cast<std::size_t>(index)] = torch::GradMode::is_enabled();
        memory[static_cast<std::size_t>(index)] = TensorMemoryScope::is_active();
      });
    }
    EXPECT_EQ(gradients, std::vector<int>(3, with_gradients));
    EXPECT_EQ(memory, std::vector<int>(3, reuses));
    run_chunks(3,
               [&](std::int64_t index) { memory[static_cast<std::size_t>(index)] = TensorMemoryScope::is_active(); });
    EXPECT_EQ(memory, std::vector<int>(3, 0)) << "the scope has ended";
  }
}

TEST_F(ChunkThreadsTest, ThrowsWhatTheFirstThatFailedThrewOnceAllHaveEnded) {
  std::atomic<int> ended = 0;
  const auto compute = [&](std::int64_t index) {
    if (index == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++ended;
    if (index < 2) throw std::runtime_error("chunk " + std::to_string(index));
  };
  try {
    run_chunks(3, compute);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "chunk 0");
  }
  EXPECT_EQ(ended, 3);
  ended = 0;
  run_chunks(3, [&](std::int64_t) { ++ended; });
  EXPECT_EQ(ended, 3) << "the threads serve the next call";
}

TEST_F(ChunkThreadsTest, CallsOfSeveralThreadsTakeTurns) {
  std::atomic<int> sum = 0;
  const auto many = [&] {
    at::set_num_threads(3);
    for (int i = 0; i < 200; ++i) run_chunks(3, [&](std::int64_t index) { sum += static_cast<int>(index) + 1; });
  };
  std::thread other(many);
  many();
  other.join();
  EXPECT_EQ(sum, 2 * 200 * 6);
}

}  // namespace
}  // namespace sdtune::model
