// Steps of Gloo ranks whose optimizers share the parameters out, beside ranks that all keep everything.
#include "train/shard/shards.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include "tests/support/gloo_ranks.h"
#include "train/dist/gradient_buckets.h"
#include "train/optim/clip_grad.h"
#include "train/optim/optimizer.h"
#include "train/optim/state_size.h"
#include "train/optim/weight_average.h"
#include "train/precision/grad_scaler.h"
#include "train/shard/shard_layout.h"

namespace sdtune::train {
namespace {

enum class Sharing { kNone, kOptimizer, kGradients };

struct Setting {
  std::string optimizer = "adamw";
  torch::Dtype dtype = torch::kFloat32;
  std::int64_t ranks = 2;
  std::int64_t steps = 50;
  std::int64_t rounds = 1;
  bool sums_in_rank_order = false;  // of ranks that share nothing
  bool sends_bfloat16 = false;
  std::int64_t stale_from = -1;  // a mutant: from this step on one rank forgets its moments before each step
};

// Sums that add rank by rank, as those that go to one owner do: what ranks that share nothing are compared with.
class RankOrderGroup final : public ProcessGroup {
 public:
  explicit RankOrderGroup(ProcessGroup& group) : group_(group) {}
  std::int64_t rank() const override { return group_.rank(); }
  std::int64_t world_size() const override { return group_.world_size(); }
  std::unique_ptr<PendingReduce> start_all_reduce_sum(torch::Tensor tensor) override {
    group_.start_reduce_sum(tensor, 0)->wait();
    group_.broadcast(tensor, 0);
    return std::make_unique<Done>();
  }
  void broadcast(torch::Tensor tensor, std::int64_t root) override { group_.broadcast(tensor, root); }
  void barrier() override { group_.barrier(); }
  std::vector<std::string> gather_text(const std::string& text) override { return group_.gather_text(text); }

 private:
  struct Done final : PendingReduce {
    void wait() override {}
  };
  ProcessGroup& group_;
};

// Layers of several kinds: large enough for 8-bit moments, a convolution in channels last, small vectors. The last one
// is of the second rate group.
struct Net {
  std::vector<torch::Tensor> weights;
  std::vector<std::string> names = {"conv.weight", "conv.bias", "in.weight", "in.bias", "out.weight", "text.weight"};

  explicit Net(torch::Dtype dtype) {
    const at::Generator generator = at::detail::createCPUGenerator(11);  // ranks are threads: not the common one
    const auto draw = [&](torch::IntArrayRef shape) { return torch::randn(shape, generator) * 0.1; };
    weights = {draw({8, 4, 3, 3}).contiguous(torch::MemoryFormat::ChannelsLast) * 2,
               draw({8}),
               draw({80, 72}),
               draw({80}),
               draw({64, 80}),
               draw({72, 72})};
    for (torch::Tensor& weight : weights) weight = weight.to(dtype).requires_grad_(true);
  }
  // x: [batch, 4, 5, 5].
  torch::Tensor loss(const torch::Tensor& x) const {
    const torch::Tensor image = torch::conv2d(x, weights[0], weights[1]);  // [batch, 8, 3, 3]
    const torch::Tensor text = image.flatten(1).mm(weights[5]).tanh();
    return text.mm(weights[2].t()).add(weights[3]).tanh().mm(weights[4].t()).to(torch::kFloat32).pow(2).mean();
  }
};

// One rank of a small training run: the steps of train_step.cpp.
struct Rank {
  Setting setting;
  ProcessGroup& group;
  Net net;
  OptimOptions options;
  std::unique_ptr<GradientBuckets> buckets;
  std::unique_ptr<Shards> shards;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<WeightAverage> average;
  GradScaler scaler;
  std::int64_t most_gradient_bytes = 0;

  Rank(const Setting& of, Sharing sharing, ProcessGroup& of_group)
      : setting(of), group(of_group), net(of.dtype), scaler(true, torch::kCPU) {
    options.optimizer = setting.optimizer;
    options.learning_rate = 1;
    std::vector<NamedParameter> named;
    std::vector<TrainedParameter> parameters;
    std::vector<ShardCost> costs;
    for (std::size_t i = 0; i < net.weights.size(); ++i) {
      const torch::Tensor& weight = net.weights[i];
      named.push_back({net.names[i], weight});
      parameters.push_back({net.names[i], weight, {}, {}, i == 5 ? 1 : 0});
      costs.push_back({net.names[i], 4 * weight.numel(), optimizer_state_bytes(options, weight.sizes())});
    }
    BucketOptions bucket_options{.bucket_bytes = 20000, .float32_gradients = true};
    if (sharing != Sharing::kNone) bucket_options.owners = assign_owners(costs, group.world_size());
    bucket_options.frees_gradients = sharing == Sharing::kGradients;
    bucket_options.sends_bfloat16 = setting.sends_bfloat16;
    buckets = std::make_unique<GradientBuckets>(named, group, bucket_options);
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].gradient = buckets->gradient(i);
    shards = std::make_unique<Shards>(parameters, bucket_options.owners, group);
    std::vector<TrainedParameter> own;
    for (const std::size_t index : shards->own()) own.push_back(parameters[index]);
    optimizer = make_optimizer(own, options, false, shards->optimizer_shard());
    average = std::make_unique<WeightAverage>(*optimizer, 0.9);
    if (!buckets->frees_gradients()) return;
    buckets->probe([&] { net.loss(batch(0, 0)).backward(); });
    buckets->agree_on_order();
  }

  torch::Tensor batch(std::int64_t step, std::int64_t round) const {
    torch::Tensor x = torch::zeros({2, 4, 5, 5});
    const auto key = static_cast<double>(1 + step * 31 + round * 7 + group.rank());
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      x.view({-1})[i] = std::sin(key * static_cast<double>(i + 1) * 0.37);
    }
    return x.to(setting.dtype);
  }

  // One step in which a rank's loss may be no number.
  torch::Tensor step(std::int64_t number) {
    buckets->begin_step(setting.rounds);
    const bool overflows = number == 7 && group.rank() == group.world_size() - 1;
    for (std::int64_t round = 0; round < setting.rounds; ++round) {
      buckets->begin_round();
      const torch::Tensor loss = net.loss(batch(number, round)) * scaler.scale() * (overflows ? INFINITY : 1.0F);
      loss.backward();
      most_gradient_bytes = std::max(most_gradient_bytes, buckets->gradient_bytes());
    }
    buckets->finish_step();
    if (number >= setting.stale_from && setting.stale_from >= 0 && group.rank() == 1) {
      const torch::NoGradGuard no_grad;
      optimizer->states().front().second.zero_();
    }
    const torch::Tensor scale = scaler.scale().clone();
    const ClippedGradient gradient = clip_gradient(shards->parameters(), scale, 0.05, shards->optimizer_shard());
    const double rate = setting.optimizer == "prodigy" ? 1.0 : 1e-3;
    const double text_rate = number >= 30 ? 0.0 : rate;  // its training ends
    optimizer->step(torch::tensor({rate, text_rate}, torch::kFloat64), gradient.factor);
    shards->share_weights();
    scaler.update(gradient.norm);
    average->update(number + 1);
    return gradient.norm;
  }
};

// What all ranks have in the end, and the norm of each step.
struct Outcome {
  std::vector<torch::Tensor> weights, norms;
  std::vector<std::pair<std::string, torch::Tensor>> averages;
  std::int64_t updates = 0;
  double scale = 0;
  std::vector<std::int64_t> state_bytes, gradient_bytes;  // by rank
};

Outcome train(const Setting& setting, Sharing sharing) {
  Outcome outcome;
  outcome.state_bytes.resize(static_cast<std::size_t>(setting.ranks));
  outcome.gradient_bytes.resize(static_cast<std::size_t>(setting.ranks));
  std::mutex mutex;
  const std::vector<std::string> errors = test::run_ranks(setting.ranks, {}, [&](ProcessGroup& real) {
    RankOrderGroup ordered(real);
    ProcessGroup& group = setting.sums_in_rank_order && sharing == Sharing::kNone ? ordered : real;
    Rank rank(setting, sharing, group);
    std::vector<torch::Tensor> norms;
    for (std::int64_t step = 0; step < setting.steps; ++step) norms.push_back(rank.step(step));
    group.barrier();
    const std::lock_guard lock(mutex);
    const auto index = static_cast<std::size_t>(group.rank());
    for (const auto& [name, state] : rank.optimizer->states()) {
      if (name != "prodigy.estimate") outcome.state_bytes[index] += static_cast<std::int64_t>(state.nbytes());
    }
    outcome.gradient_bytes[index] = rank.buckets->gradient_bytes();
    for (const auto& [name, value] : rank.average->values()) outcome.averages.emplace_back(name, value.clone());
    if (outcome.weights.empty()) {
      outcome.norms = norms;
      outcome.updates = rank.optimizer->updates().item<std::int64_t>();
      outcome.scale = rank.scaler.state().scale;
      for (const torch::Tensor& weight : rank.net.weights) outcome.weights.push_back(weight.detach().clone());
    }
    for (std::size_t i = 0; i < outcome.weights.size(); ++i) {
      EXPECT_TRUE(rank.net.weights[i].equal(outcome.weights[i])) << "rank " << index << ", " << rank.net.names[i];
    }
    for (std::size_t i = 0; i < norms.size(); ++i) EXPECT_TRUE(norms[i].equal(outcome.norms[i]) || i == 7) << i;
  });
  EXPECT_THAT(errors, testing::Each(""));
  return outcome;
}

bool same_bits(const Outcome& a, const Outcome& b) {
  bool same = a.updates == b.updates && a.scale == b.scale;
  for (std::size_t i = 0; i < a.weights.size(); ++i) same = same && a.weights[i].equal(b.weights[i]);
  for (std::size_t i = 0; i < a.norms.size(); ++i) same = same && (a.norms[i].equal(b.norms[i]) || i == 7);
  for (const auto& [name, value] : a.averages) {
    for (const auto& [other, of_other] : b.averages) same = same && (name != other || value.equal(of_other));
  }
  return same;
}

double difference(const Outcome& a, const Outcome& b) {
  double sum = 0, norm = 0;
  for (std::size_t i = 0; i < a.weights.size(); ++i) {
    sum += (a.weights[i] - b.weights[i]).to(torch::kFloat64).square().sum().item<double>();
    norm += b.weights[i].to(torch::kFloat64).square().sum().item<double>();
  }
  return std::sqrt(sum / norm);
}

class EveryShardedOptimizer : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryShardedOptimizer, OfTwoRanksHasTheBitsOfRanksThatShareNothing) {
  for (const torch::ScalarType dtype : {torch::kFloat32, torch::kBFloat16}) {
    const Setting setting{.optimizer = GetParam(), .dtype = dtype, .steps = dtype == torch::kFloat32 ? 50 : 10};
    const Outcome whole = train(setting, Sharing::kNone);
    EXPECT_EQ(whole.updates, setting.steps - 1) << "one step overflows";
    EXPECT_TRUE(same_bits(train(setting, Sharing::kOptimizer), whole)) << dtype;
    EXPECT_TRUE(same_bits(train(setting, Sharing::kGradients), whole)) << dtype;
  }
}

void check_rank_order(const std::string& optimizer, std::int64_t steps) {
  for (const std::int64_t ranks : {3, 4}) {
    const Setting setting{.optimizer = optimizer, .ranks = ranks, .steps = steps, .sums_in_rank_order = true};
    const Outcome ordered = train(setting, Sharing::kNone);
    EXPECT_TRUE(same_bits(train(setting, Sharing::kOptimizer), ordered)) << ranks;
    EXPECT_TRUE(same_bits(train(setting, Sharing::kGradients), ordered)) << ranks;
  }
}

TEST_P(EveryShardedOptimizer, OfSeveralRanksHasTheBitsOfSumsInTheOrderOfRanks) {
  check_rank_order(GetParam(), 10);
}

// The long version: the program of these tests with --gtest_also_run_disabled_tests --gtest_filter='*FiftySteps*'.
TEST_P(EveryShardedOptimizer, DISABLED_OfSeveralRanksHasThoseBitsAfterFiftySteps) {
  check_rank_order(GetParam(), 50);
}

INSTANTIATE_TEST_SUITE_P(All, EveryShardedOptimizer,
                         ::testing::Values("adamw", "adamw_8bit", "adafactor", "lion", "prodigy"));

TEST(Shards, StayCloseToSumsInAnotherOrder) {
  const Setting setting{.ranks = 4, .steps = 20};
  const Outcome whole = train(setting, Sharing::kNone);
  EXPECT_LE(difference(train(setting, Sharing::kOptimizer), whole), 1e-6);
  EXPECT_LE(difference(train(setting, Sharing::kGradients), whole), 1e-6);
}

// The mutant of all of the above: one rank forgets the first moment of one of its parameters before the last step.
TEST(Shards, AreToldApartFromAnOwnerWithStaleMoments) {
  Setting setting{.steps = 20};
  const Outcome whole = train(setting, Sharing::kNone);
  setting.stale_from = 19;
  const Outcome stale = train(setting, Sharing::kOptimizer);
  EXPECT_FALSE(same_bits(stale, whole));
  EXPECT_GT(difference(stale, whole), 1e-6);
}

// Each micro-batch is summed over the ranks by itself, so only rounding may differ.
TEST(Shards, OfGradientsTakeSeveralMicroBatches) {
  const Setting setting{.ranks = 3, .steps = 20, .rounds = 3};
  const Outcome whole = train(setting, Sharing::kNone);
  EXPECT_LE(difference(train(setting, Sharing::kGradients), whole), 1e-6);
  Setting fewer = setting;
  fewer.rounds = 2;  // the mutant: a micro-batch is lost
  EXPECT_GT(difference(train(fewer, Sharing::kGradients), whole), 1e-6);
}

// The larger share of a whole that is cut between two ranks parameter by parameter, where it is cut best.
double best_larger_share(const std::vector<std::int64_t>& sizes) {
  const std::int64_t whole = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  std::int64_t best = whole;
  for (std::size_t chosen = 0; chosen < std::size_t{1} << sizes.size(); ++chosen) {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) first += (chosen >> i & 1) != 0 ? sizes[i] : 0;
    best = std::min(best, std::max(first, whole - first));
  }
  return static_cast<double>(best) / static_cast<double>(whole);
}

TEST(Shards, KeepTheirShareOfStatesAndGradients) {
  const Setting setting{.steps = 2, .rounds = 2};
  const Outcome whole = train(setting, Sharing::kNone);
  const Outcome sharded = train(setting, Sharing::kGradients);
  // Three large tensors cannot be halved: two of them are 0.627 of the whole. shard_layout_test has a model's sizes.
  std::vector<std::int64_t> sizes;
  for (const torch::Tensor& weight : Net(setting.dtype).weights) sizes.push_back(weight.numel());
  const double share = best_larger_share(sizes);
  EXPECT_LT(share, 0.63);
  std::int64_t states = 0;
  for (const std::int64_t bytes : sharded.state_bytes) {
    states += bytes;
    EXPECT_LE(static_cast<double>(bytes), (share + 0.005) * static_cast<double>(whole.state_bytes[0]));
  }
  EXPECT_EQ(states, whole.state_bytes[0]);
  for (const std::int64_t bytes : sharded.gradient_bytes) {
    EXPECT_LE(static_cast<double>(bytes), (share + 0.005) * static_cast<double>(whole.gradient_bytes[0]));
  }
  EXPECT_EQ(train(setting, Sharing::kOptimizer).gradient_bytes[1], whole.gradient_bytes[1]);
}

TEST(Shards, SendBfloat16WhereThatIsAskedFor) {
  Setting setting{.steps = 20};
  const Outcome whole = train(setting, Sharing::kNone);
  setting.sends_bfloat16 = true;
  for (const Sharing sharing : {Sharing::kNone, Sharing::kOptimizer, Sharing::kGradients}) {
    const double away = difference(train(setting, sharing), whole);
    EXPECT_LE(away, 2e-3);
    EXPECT_GT(away, 1e-7) << "was not rounded";
  }
}

TEST(Shards, NameTheFirstGradientThatIsNotFinite) {
  for (const Sharing sharing : {Sharing::kOptimizer, Sharing::kGradients}) {
    const std::vector<std::string> errors = test::run_ranks(2, {}, [&](ProcessGroup& group) {
      Rank rank({}, sharing, group);
      for (const std::size_t bad : {std::size_t{2}, std::size_t{5}}) {
        for (const std::size_t index : rank.shards->own()) {
          torch::Tensor gradient = rank.buckets->gradient(index);
          gradient.fill_(index == bad || index == 5 ? NAN : 0.5);
        }
        const ClippedGradient gradient =
            clip_gradient(rank.shards->parameters(), torch::scalar_tensor(1.0F), 1.0, rank.shards->optimizer_shard());
        EXPECT_EQ(first_non_finite(rank.shards->parameters(), gradient.sums), rank.net.names[bad]);
      }
      group.barrier();
    });
    EXPECT_THAT(errors, testing::Each(""));
  }
}

}  // namespace
}  // namespace sdtune::train
