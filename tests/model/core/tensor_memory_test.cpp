#include "model/core/tensor_memory.h"

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

namespace sdtune::model {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

class TensorMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    const TensorMemoryScope scope;
    { const torch::Tensor one = torch::empty({1}); }
    if (tensor_memory().kept == 0) GTEST_SKIP() << "under the address sanitizer nothing is kept";
    release_tensor_memory();
  }
  static torch::Tensor bytes(std::int64_t count) { return torch::empty({count}, torch::kUInt8); }
};

TEST_F(TensorMemoryTest, ATensorTakesTheBlockOfAFreedOneOfItsSize) {
  const TensorMemoryScope scope;
  torch::Tensor first = bytes(kMiB);
  void* const place = first.data_ptr();
  first.reset();
  EXPECT_GE(tensor_memory().kept, static_cast<std::size_t>(kMiB));
  const torch::Tensor other = bytes(2 * kMiB);
  EXPECT_NE(other.data_ptr(), place);
  const torch::Tensor again = bytes(kMiB);
  EXPECT_EQ(again.data_ptr(), place);
  const torch::Tensor third = bytes(kMiB);
  EXPECT_NE(third.data_ptr(), place) << "a block serves one tensor at a time";
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * getpagesize();
}

// As freed blocks within malloc's heap do not, whose limit for pages of their own grows with the blocks that it frees.
TEST_F(TensorMemoryTest, WhatIsGivenBackBetweenOtherTensorsLeavesTheProcess) {
  void* volatile large = std::malloc(31 * kMiB);  // volatile: else the compiler leaves both calls out
  std::free(large);
  const TensorMemoryScope scope;
  std::vector<torch::Tensor> tensors;
  for (int i = 0; i < 64; ++i) tensors.push_back(bytes(4 * kMiB).fill_(1));
  const std::int64_t before = resident_bytes();
  for (std::size_t i = 0; i < tensors.size(); i += 2) tensors[i].reset();
  release_tensor_memory();
  EXPECT_LT(resident_bytes(), before - 100 * kMiB);
}

// oneDNN asks for the process's allocator when it frees, not when it allocates, so memory from before the first scope
// comes to ours.
TEST_F(TensorMemoryTest, MemoryOfLibTorchsAllocatorGoesBackToIt) {
  const TensorMemoryScope scope;
  const TensorMemory before = tensor_memory();
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{4096}, std::size_t{1} << 20}) {
    std::vector<void*> places;
    for (int i = 0; i < 50; ++i) places.push_back(c10::GetDefaultCPUAllocator()->raw_allocate(bytes));
    for (void* const place : places) c10::GetCPUAllocator()->raw_deallocate(place);
  }
  EXPECT_EQ(tensor_memory().used, before.used);
  EXPECT_EQ(tensor_memory().kept, before.kept);
}

TEST_F(TensorMemoryTest, EverySizeFitsIsAlignedAndWastesAtMostAnEighth) {
  const TensorMemoryScope scope;
  for (std::int64_t size = 1; size < 5000; size += 7) {
    for (const std::int64_t count : {size, size * 4099}) {
      const std::size_t before = tensor_memory().used;
      torch::Tensor tensor = bytes(count).fill_(7);
      const auto taken = static_cast<std::int64_t>(tensor_memory().used - before);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 64, 0U);
      EXPECT_GE(taken, count + 64);
      EXPECT_LE(taken, std::max<std::int64_t>(576, (count + 64) * 9 / 8 + 1)) << count;
    }
  }
}

TEST_F(TensorMemoryTest, KeptBlocksStayBelowTheLimit) {
  const TensorMemoryScope scope;
  std::size_t most = 0;
  for (std::int64_t size = 1; size < 200; ++size) {  // sizes that never come again
    { const torch::Tensor tensor = bytes(size * kMiB); }
    const TensorMemory memory = tensor_memory();
    EXPECT_LE(memory.used + memory.kept, memory.peak + kept_memory_limit(memory.peak));
    most = std::max(most, memory.kept);
  }
  EXPECT_GT(most, std::size_t{256} << 20);
  release_tensor_memory();
  EXPECT_EQ(tensor_memory().kept, 0U);
}

TEST_F(TensorMemoryTest, WhatWaitsLongestIsTrimmedFirst) {
  const TensorMemoryScope scope;
  for (const std::int64_t size : {3, 5, 7}) const torch::Tensor freed = bytes(size * kMiB);
  trim_tensor_memory(std::size_t{100} << 20);
  EXPECT_GE(tensor_memory().kept, std::size_t{15} << 20) << "fewer bytes than that wait";
  trim_tensor_memory(std::size_t{10} << 20);
  const std::size_t left = tensor_memory().kept;
  EXPECT_GE(left, std::size_t{7} << 20);
  EXPECT_LE(left, std::size_t{8} << 20) << "of the youngest alone";
  const torch::Tensor again = bytes(7 * kMiB);
  EXPECT_EQ(tensor_memory().kept, 0U);
}

TEST_F(TensorMemoryTest, OnlyTensorsOfAScopeAreKept) {
  release_tensor_memory();
  { const torch::Tensor outside = bytes(kMiB); }
  EXPECT_EQ(tensor_memory().kept, 0U);
  {
    const TensorMemoryScope scope;
    { const TensorMemoryScope inner; }
    std::thread([] { const torch::Tensor of_another_thread = bytes(kMiB); }).join();
    EXPECT_EQ(tensor_memory().kept, 0U);
    { const torch::Tensor inside = bytes(kMiB); }
    EXPECT_GT(tensor_memory().kept, 0U);
  }
  torch::Tensor later;
  {
    const TensorMemoryScope scope;
    later = bytes(kMiB);
  }
  const TensorMemory before = tensor_memory();
  later.reset();  // a notebook lets go of a model between two calls
  EXPECT_EQ(tensor_memory().kept, before.kept);
  EXPECT_LE(tensor_memory().used + kMiB, before.used);
}

// A call that loads a model and lets go of it must not leave the process as large as it was meanwhile.
TEST_F(TensorMemoryTest, NoMoreThanAGibibyteWaitsForTheNextScope) {
  constexpr std::size_t kAtRest = std::size_t{1} << 30;
  std::size_t within = 0;
  {
    const TensorMemoryScope scope;
    std::vector<torch::Tensor> model;
    for (int i = 0; i < 24; ++i) model.push_back(bytes(64 * kMiB));
    model.clear();
    within = tensor_memory().kept;
    { const TensorMemoryScope inner; }
    EXPECT_EQ(tensor_memory().kept, within) << "an inner scope ends nothing";
    std::thread([] { const TensorMemoryScope of_another_thread; }).join();
    EXPECT_EQ(tensor_memory().kept, within) << "nor does one of another thread";
  }
  EXPECT_GT(within, kAtRest);
  const std::size_t kept = tensor_memory().kept;
  EXPECT_LE(kept, kAtRest);
  EXPECT_GT(kept, kAtRest / 2);
  const TensorMemoryScope scope;
  for (int i = 0; i < 3; ++i) const torch::Tensor again = bytes(64 * kMiB);
  EXPECT_EQ(tensor_memory().kept, kept) << "the next scope finds it all";
}

TEST_F(TensorMemoryTest, ThreadsShareTheBlocks) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      const TensorMemoryScope scope;
      for (int i = 0; i < 2000; ++i) {
        const torch::Tensor tensor = torch::full({1 + (i * 37) % 3000}, t, torch::kInt32);
        ASSERT_TRUE((tensor == t).all().item<bool>());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(TensorMemoryTest, LibrariesMayTakeAndGiveBackBytes) {
  c10::Allocator& allocator = *c10::GetCPUAllocator();
  for (const bool inside : {false, true}) {
    const auto scope = inside ? std::make_unique<TensorMemoryScope>() : nullptr;
    void* place = allocator.raw_allocate(1000);
    ASSERT_NE(place, nullptr);
    allocator.raw_deallocate(place);
  }
}

}  // namespace
}  // namespace sdtune::model
