// Real Gloo ranks, as threads of this process: each has its own store connection and backend.
#include "train/dist/process_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <torch/csrc/autograd/autograd.h>
#include <unistd.h>

#include <functional>
#include <mutex>
#include <thread>

#include "model/base/error.h"
#include "train/dist/gradient_buckets.h"

namespace sdtune::train {
namespace {

std::int64_t free_port() {
  const int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  bind(socket_fd, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(socket_fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(socket_fd);
  return ntohs(address.sin_port);
}

RankEnv env_of(std::int64_t rank, std::int64_t world_size, std::int64_t port) {
  RankEnv env;
  env.rank = env.local_rank = rank;
  env.world_size = env.local_world_size = world_size;
  env.master_address = "127.0.0.1";
  env.master_port = port;
  return env;
}

// Runs `body` as every rank; returns what each threw, "" for nothing.
std::vector<std::string> run_ranks(std::int64_t count, const DistOptions& options,
                                   const std::function<void(ProcessGroup&)>& body,
                                   const std::function<std::string(std::int64_t)>& hash = {}) {
  const std::int64_t port = free_port();
  std::vector<std::string> errors(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (std::int64_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto group = connect_ranks(env_of(rank, count, port), torch::kCPU, options, hash ? hash(rank) : "same");
        body(*group);
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(rank)] = error.problems().front().line();
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = std::string("bug: ") + error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

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

TEST(ProcessGroup, BucketsOfTwoRanksHoldTheGradientOfTheWholeBatch) {
  const torch::Tensor start = torch::randn({6, 6});
  const torch::Tensor data = torch::randn({4, 6, 8});  // four samples
  torch::Tensor whole = start.clone().requires_grad_(true);
  const torch::Tensor want = torch::autograd::grad({whole.matmul(data).tanh().pow(2).sum()}, {whole})[0];
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
      EXPECT_TRUE(torch::allclose(buckets.gradient(0), want, 1e-5, 1e-6));
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
