#include "train/dist/stop_agreement.h"

#include <gtest/gtest.h>

#include <csignal>

namespace sdtune::train {
namespace {

// Two ranks of which the other one sends what it is told to.
class VotingPair final : public ProcessGroup {
 public:
  std::int64_t rank() const override { return 0; }
  std::int64_t world_size() const override { return 2; }
  std::unique_ptr<PendingReduce> start_all_reduce_sum(torch::Tensor tensor) override {
    count_reduction(static_cast<std::int64_t>(tensor.nbytes()));
    tensor.add_(other);
    return std::make_unique<Done>();
  }
  void broadcast(torch::Tensor, std::int64_t) override {}
  void barrier() override { ADD_FAILURE() << "a step waits"; }
  std::vector<std::string> gather_text(const std::string&) override {
    ADD_FAILURE() << "a step waits";
    return {};
  }
  torch::Tensor other = torch::zeros({4});

 private:
  struct Done final : PendingReduce {
    void wait() override {}
  };
};

TEST(StopAgreement, TravelsWithTheNumbers) {
  VotingPair group;
  StopFlag stop;
  StopAgreement agreement(group, stop, torch::kCPU);
  group.other = torch::tensor({0.25F, 2.0F, 0.0F, 0.0F});
  EXPECT_TRUE(agreement.sum(torch::tensor({1.0F, 3.0F})).equal(torch::tensor({1.25F, 5.0F})));
  EXPECT_EQ(agreement.agreed(), 0);
  EXPECT_EQ(group.reductions(), 1);
}

TEST(StopAgreement, IsTheFirstRanksSignal) {
  VotingPair group;
  StopFlag stop;
  StopAgreement agreement(group, stop, torch::kCPU);
  group.other = torch::tensor({0.0F, 0.0F, 0.0F, static_cast<float>(SIGTERM)});
  agreement.sum(torch::zeros({2}));
  EXPECT_EQ(agreement.agreed(), SIGTERM);  // of the other rank alone
  stop.request(SIGINT);
  agreement.sum(torch::zeros({2}));
  EXPECT_EQ(agreement.agreed(), SIGINT);
}

TEST(StopAgreement, ASpentBudgetTravelsLikeASignalAndYieldsToOne) {
  VotingPair group;
  StopFlag stop;
  StopAgreement agreement(group, stop, torch::kCPU);
  bool spent = false;
  agreement.limit([&] { return spent; });
  group.other = torch::zeros({2});
  agreement.sum(torch::empty({0}));
  EXPECT_EQ(agreement.agreed(), 0);
  spent = true;
  agreement.sum(torch::empty({0}));
  EXPECT_EQ(agreement.agreed(), kBudgetSpent);
  group.other = torch::tensor({0.0F, static_cast<float>(SIGTERM)});  // the other rank's, although this one comes first
  agreement.sum(torch::empty({0}));
  EXPECT_EQ(agreement.agreed(), SIGTERM);
}

TEST(StopAgreement, OfOneRankIsItsOwnFlag) {
  SingleProcess alone;
  StopFlag stop;
  StopAgreement agreement(alone, stop, torch::kCPU);
  const torch::Tensor numbers = torch::tensor({1.0F, 2.0F});
  EXPECT_TRUE(agreement.sum(numbers).is_same(numbers));
  EXPECT_EQ(agreement.agreed(), 0);
  stop.request(SIGINT);
  EXPECT_EQ(agreement.agreed(), SIGINT);
}

}  // namespace
}  // namespace sdtune::train
