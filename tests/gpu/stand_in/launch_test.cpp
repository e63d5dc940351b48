#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "model/core/out_of_memory.h"
#include "tests/gpu/host/host_gpu.h"
#include "tests/gpu/stand_in/stand_in.h"

namespace sdtune::model {
namespace {

struct LaunchError {
  std::string words;
  bool is_memory = false;
};

LaunchError error_of_launch_on(std::int32_t device) {
  std::vector<float> out(4);
  const std::vector<std::uint32_t> words(5);
  try {
    sdtune_cuda_table()->philox_normal(out.data(), 1, 4, words.data(), {nullptr, device});
  } catch (const std::exception& error) {
    return {error.what(), is_out_of_memory(error)};
  }
  return {};
}

TEST(KernelLaunch, WithoutMemoryIsWhatASmallerBatchMayMend) {
  const LaunchError error = error_of_launch_on(host_gpu::kFullDevice);
  EXPECT_EQ(error.words, "kernel philox_normal on cuda:2, grid 1 x 1 x 1: out of memory");
  EXPECT_TRUE(error.is_memory);
}

TEST(KernelLaunch, SaysWhereTheFailureMayBeOfAnotherOne) {
  const LaunchError earlier = error_of_launch_on(host_gpu::kFailedDevice);
  EXPECT_THAT(earlier.words, testing::EndsWith(": unspecified launch failure (of this or an earlier operation)"));
  EXPECT_FALSE(earlier.is_memory);
  EXPECT_THAT(error_of_launch_on(99).words, testing::EndsWith(": invalid device ordinal"));
  EXPECT_EQ(error_of_launch_on(0).words, "");
}

}  // namespace
}  // namespace sdtune::model
