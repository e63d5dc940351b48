#include "model/core/device_copy.h"

#include <gtest/gtest.h>

namespace sdtune::model {
namespace {

TEST(CopyToDevice, IsTheTensorItselfOnACpu) {
  const torch::Tensor host = torch::arange(4);
  EXPECT_TRUE(copy_to_device(host, torch::kCPU).is_same(host));
}

TEST(CopyToDevice, LeavesTheCpuForAnotherDevice) {
  EXPECT_TRUE(copy_to_device(torch::arange(4), torch::kMeta).is_meta());
}

TEST(KeepOnHost, CopiesInTheSameMemoryOrder) {
  const torch::Tensor source = torch::rand({2, 3, 4, 5}).contiguous(torch::MemoryFormat::ChannelsLast);
  const torch::Tensor kept = keep_on_host(source);
  EXPECT_TRUE(kept.equal(source));
  EXPECT_EQ(kept.strides(), source.strides());
  EXPECT_NE(kept.const_data_ptr(), source.const_data_ptr());
  QueuedWork(torch::kCPU).wait();  // nothing is queued on a CPU
}

TEST(HostCopy, IsThereAtOnceOnACpu) {
  const HostCopy copy(torch::arange(4));
  EXPECT_TRUE(copy.ready());
  EXPECT_TRUE(torch::equal(copy.wait(), torch::arange(4)));
}

}  // namespace
}  // namespace sdtune::model
