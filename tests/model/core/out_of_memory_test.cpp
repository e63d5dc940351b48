#include "model/core/out_of_memory.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdint>

namespace sdtune::model {
namespace {

TEST(OutOfMemory, IsWhatTheCpuAllocatorThrows) {
  try {
    torch::empty({std::int64_t{1} << 50}, torch::kUInt8);  // a petabyte
    FAIL() << "memory was given";
  } catch (const c10::Error& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what_without_backtrace();
  }
}

TEST(OutOfMemory, IsWhatADeviceSaysAndNothingElse) {
  const c10::SourceLocation here{__func__, __FILE__, __LINE__};
  EXPECT_TRUE(is_out_of_memory(c10::OutOfMemoryError(here, "a GPU")));
  EXPECT_TRUE(is_out_of_memory(c10::Error(here, "CUDA error: out of memory")));
  EXPECT_TRUE(is_out_of_memory(c10::Error(here, "DefaultCPUAllocator: not enough memory: you tried to allocate 8")));
  EXPECT_FALSE(is_out_of_memory(c10::Error(here, "The size of tensor a (3) must match the size of tensor b (4)")));
  EXPECT_FALSE(is_out_of_memory(c10::Error(here, "index out of range")));
}

}  // namespace
}  // namespace sdtune::model
