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

TEST(HostCopy, IsThereAtOnceOnACpu) {
  const HostCopy copy(torch::arange(4));
  EXPECT_TRUE(copy.ready());
  EXPECT_TRUE(torch::equal(copy.wait(), torch::arange(4)));
}

}  // namespace
}  // namespace sdtune::model
