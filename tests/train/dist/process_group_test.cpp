// Real Gloo ranks, as threads of this process: each has its own store connection and backend.
#include "train/dist/process_group.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <mutex>
#include <thread>

#include "model/base/error.h"
#include "tests/support/gloo_ranks.h"
#include "train/dist/gradient_buckets.h"

namespace sdtune::train {
namespace {

using test::env_of;
using test::free_port;
using test::run_ranks;

TEST(ProcessGroup, OneRankNeedsNoOther) {
  const auto group = connect_ranks(RankEnv{}, torch::kCPU, {}, "hash");
  EXPECT_EQ(group->world_size(), 1);
  torch::Tensor x = torch::ones({3});
  group->all_reduce_sum(x);
  EXPECT_TRUE(x.equal(torch::ones({3})));
  EXPECT_EQ(group->gather_text("me"), std::vector<std::string>{"me"});
}

TEST(ProcessGroup, SumsBroadcastsAndGathers) {
  for (const torch::Dtype dtype : {torch::kFloat32, torch::kBFloat16, torch::kFloat16}) {
    const std::vector<std::string> errors = run_ranks(3, {}, [&](ProcessGroup& group) {
      const auto rank = static_cast<double>(group.rank());
      torch::Tensor x = torch::full({1000}, rank + 1, dtype);
      group.all_reduce_sum(x);
      if (!x.equal(torch::full({1000}, 6, dtype))) throw std::runtime_error("wrong sum");
      torch::Tensor y = torch::full({5}, rank, dtype);
      group.broadcast(y, 2);
      if (!y.equal(torch::full({5}, 2, dtype))) throw std::runtime_error("wrong broadcast");
      const std::string text(static_cast<std::size_t>(group.rank()), 'x');
      if (group.gather_text(text) != std::vector<std::string>{"", "x", "xx"}) throw std::runtime_error("wrong texts");
      group.barrier();
    });
    EXPECT_THAT(errors, testing::Each(""));
  }
}

// Numbers whose sum depends on the order: 1e8 + 1 - 1e8 is 0 or 1 in float32.
torch::Tensor summand(std::int64_t rank) {
  const at::Generator generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(rank));
  return torch::randn({1001}, generator) * std::pow(10.0, static_cast<double>(rank % 3) * 4);
}

TEST(ProcessGroup, SumsForOneRankInTheOrderOfRanks) {
  for (const std::int64_t ranks : {2, 3, 4}) {
    torch::Tensor want = summand(0), backwards = summand(ranks - 1);
    for (std::int64_t rank = 1; rank < ranks; ++rank) {
      want = want + summand(rank);
      backwards = backwards + summand(ranks - 1 - rank);
    }
    const std::vector<std::string> errors = run_ranks(ranks, {}, [&](ProcessGroup& group) {
      for (std::int64_t root = 0; root < ranks; ++root) {
        torch::Tensor x = summand(group.rank());
        group.start_reduce_sum(x, root)->wait();
        if (group.rank() == root && !x.equal(want)) throw std::runtime_error("wrong sum");
        torch::Tensor y = summand(group.rank());
        group.start_broadcast(y, root)->wait();
        if (!y.equal(summand(root))) throw std::runtime_error("wrong broadcast");
      }
      torch::Tensor half = torch::full({3}, 1.0 + static_cast<double>(group.rank()), torch::kBFloat16);
      group.start_reduce_sum(half, 0)->wait();
      const auto sum = static_cast<double>(ranks * (ranks + 1) / 2);
      if (group.is_first() && !half.eq(sum).all().item<bool>()) throw std::runtime_error("wrong sum of halves");
    });
    EXPECT_THAT(errors, testing::Each(""));
    EXPECT_EQ(want.equal(backwards), ranks == 2) << "the mutant";
  }
}

TEST(ProcessGroup, GathersBytesOfAnyLengths) {
  const std::vector<std::int64_t> counts = {2, 0, 5};
  const std::vector<std::string> errors = run_ranks(3, {}, [&](ProcessGroup& group) {
    const std::int64_t own = counts[static_cast<std::size_t>(group.rank())];
    const std::vector<torch::Tensor> bytes =
        group.gather_bytes(torch::full({own}, group.rank() + 1, torch::kUInt8), counts);
    ASSERT_EQ(bytes.size(), group.is_first() ? 3u : 0u);
    for (std::size_t rank = 0; rank < bytes.size(); ++rank) {
      EXPECT_TRUE(bytes[rank].equal(torch::full({counts[rank]}, static_cast<int>(rank) + 1, torch::kUInt8)));
    }
    EXPECT_EQ(group.gather_bytes(torch::empty({0}, torch::kUInt8), {0, 0, 0}).size(), group.is_first() ? 3u : 0u);
  });
  EXPECT_THAT(errors, testing::Each(""));
}

// In double, where the order of a sum shows in the sixteenth digit: in float32 the batch as a whole and sample by
// sample differ by more than 1e-6 now and then, by which kernels the processor and the memory's alignment choose.
TEST(ProcessGroup, BucketsOfTwoRanksHoldTheGradientOfTheWholeBatch) {
  const at::Generator generator = at::detail::createCPUGenerator(7);
  const torch::Tensor start = torch::randn({6, 6}, generator, torch::kFloat64);
  const torch::Tensor data = torch::randn({4, 6, 8}, generator, torch::kFloat64);  // four samples
  torch::Tensor whole = start.clone().requires_grad_(true);
  const auto gradient_of = [&](const torch::Tensor& samples) {
    return torch::autograd::grad({whole.matmul(samples).tanh().pow(2).sum()}, {whole})[0];
  };
  const torch::Tensor want = gradient_of(data);
  EXPECT_FALSE(torch::allclose(gradient_of(data.slice(0, 0, 3)), want, 1e-12, 1e-13)) << "the mutant: a sample is lost";
  std::mutex mutex;
  const std::vector<std::string> errors = run_ranks(2, {}, [&](ProcessGroup& group) {
    torch::Tensor weight = start.clone().requires_grad_(true);
    GradientBuckets buckets({{"weight", weight}}, group, {});
    for (int step = 0; step < 3; ++step) {
      buckets.begin_step(2);
      for (std::int64_t round = 0; round < 2; ++round) {
        buckets.begin_round();
        weight.matmul(data[round * 2 + group.rank()]).tanh().pow(2).sum().backward();
      }
      buckets.finish_step();
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(torch::allclose(buckets.gradient(0), want, 1e-12, 1e-13));
    }
    EXPECT_EQ(group.reductions(), 3);
    group.barrier();
  });
  EXPECT_THAT(errors, testing::Each(""));
}

TEST(ProcessGroup, RefusesRanksThatAreConfiguredDifferently) {
  const std::vector<std::string> errors = run_ranks(
      2, {}, [](ProcessGroup&) {}, [](std::int64_t rank) { return std::to_string(rank); });
  EXPECT_THAT(errors, testing::Each(testing::StartsWith("rank 1 (")));
  EXPECT_THAT(errors, testing::Each(testing::HasSubstr(": 1 instead of 0")));  // the line that differs
}

TEST(ProcessGroup, NamesTheRankThatIsLost) {
  DistOptions options;
  options.peer_timeout = 20;
  const std::vector<std::string> errors = run_ranks(3, options, [](ProcessGroup& group) {
    group.barrier();
    if (group.rank() == 1) return;  // its connections and its heart stop
    group.begin_step(5);
    group.barrier();
  });
  EXPECT_EQ(errors[1], "");
  for (const std::size_t survivor : {0, 2}) {
    EXPECT_THAT(errors[survivor], testing::StartsWith("rank 1 ("));
    EXPECT_THAT(errors[survivor], testing::HasSubstr("was lost at step 5 while waiting for all ranks"));
  }
}

// Its end takes the store away, where the others are to read why.
TEST(ProcessGroup, ThatTheStoresRankFailedReachesTheOthers) {
  const std::vector<std::string> errors = run_ranks(3, {}, [](ProcessGroup& group) {
    group.barrier();
    if (group.is_first()) {
      const ConfigError failure("checkpoints", "no space is left");
      group.say_failure(failure);
      throw failure;
    }
    group.barrier();
  });
  EXPECT_EQ(errors[0], "checkpoints: no space is left");
  for (const std::size_t other : {1, 2}) {
    EXPECT_THAT(errors[other], testing::MatchesRegex("rank 0 \\(.*\\): failed: checkpoints: no space is left"));
  }
}

// Rank 0 saves for longer than peer_timeout.
std::vector<std::string> run_with_a_slow_rank(const std::function<void(ProcessGroup&)>& meet) {
  DistOptions options;
  options.peer_timeout = 1;
  return run_ranks(2, options, [&](ProcessGroup& group) {
    if (group.is_first()) std::this_thread::sleep_for(std::chrono::seconds(4));
    meet(group);
  });
}

TEST(ProcessGroup, ABarrierWaitsForASlowRankThatLives) {
  EXPECT_THAT(run_with_a_slow_rank([](ProcessGroup& group) { group.barrier(); }), testing::Each(""));
}

TEST(ProcessGroup, ASumDoesNotWaitForASlowRank) {
  const std::vector<std::string> errors =
      run_with_a_slow_rank([](ProcessGroup& group) { group.all_reduce_sum(torch::ones({3})); });
  EXPECT_NE(errors[1], "");
}

TEST(ProcessGroup, NamesTheRankThatNeverCame) {
  DistOptions options;
  options.start_timeout = 1;
  try {
    connect_ranks(env_of(0, 2, free_port()), torch::kCPU, options, "hash");
    FAIL() << "one of two ranks started alone";
  } catch (const PeerLostError& error) {
    EXPECT_EQ(error.problems().front().where, "rank 1");
  }
}

}  // namespace
}  // namespace sdtune::train
