#include "train/dist/network_interfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

#include "tests/support/gloo_ranks.h"

namespace sdtune::train {
namespace {

class GlooInterfaces : public testing::Test {
 protected:
  static void give(const char* names) { setenv("GLOO_SOCKET_IFNAME", names, 1); }
  void SetUp() override { unsetenv("GLOO_SOCKET_IFNAME"); }
  void TearDown() override { unsetenv("GLOO_SOCKET_IFNAME"); }
};

TEST_F(GlooInterfaces, AreSeparatedByCommas) {
  EXPECT_THAT(gloo_interfaces(), testing::IsEmpty());
  give("");
  EXPECT_THAT(gloo_interfaces(), testing::IsEmpty());
  give("ib0");
  EXPECT_THAT(gloo_interfaces(), testing::ElementsAre("ib0"));
  give("eth0,ib0,");
  EXPECT_THAT(gloo_interfaces(), testing::ElementsAre("eth0", "ib0"));
}

TEST_F(GlooInterfaces, OfThisMachineHoldTheLoopback) {
  EXPECT_THAT(interfaces_with_address(), testing::Contains("lo"));
  EXPECT_THAT(interfaces_with_address(), testing::Not(testing::Contains("nowhere0")));
}

// PyTorch takes a list too.
TEST_F(GlooInterfaces, CarryTheSumsOfRanksWhenSeveralAreNamed) {
  give("lo,lo");
  const std::vector<std::string> errors = test::run_ranks(2, {}, [](ProcessGroup& group) {
    for (int sum = 0; sum < 3; ++sum) {
      torch::Tensor x = torch::ones({3});
      group.all_reduce_sum(x);
      if (!x.equal(torch::full({3}, 2.0F))) throw std::runtime_error("wrong sum");
    }
    group.barrier();
  });
  EXPECT_THAT(errors, testing::Each(""));
}

}  // namespace
}  // namespace sdtune::train
