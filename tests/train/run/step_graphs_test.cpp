#include "train/run/step_graphs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <utility>

#include "tests/support/no_portrait_readers.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_training.h"
#include "train/preflight/preflight.h"
#include "train/run/build_run.h"
#include "train/run/train_step.h"

namespace sdtune::train {
namespace {

using Work = std::function<void()>;

// Does the work at each replay: what a GPU's graph does, as long as the work reads memory that stays.
class WorkAgain final : public model::DeviceGraph {
 public:
  explicit WorkAgain(Work work) : work_(std::move(work)) {}
  void replay() override { work_(); }

 private:
  Work work_;
};

std::unique_ptr<model::DeviceGraph> work_again(const Work& work, const model::DeviceGraph*) {
  return std::make_unique<WorkAgain>(work);
}

StepInputs inputs_of(double value, std::int64_t samples) {
  MicroInputs micro;
  micro.instances = samples;
  micro.parts.resize(1);
  micro.parts.front().latents = torch::full({samples}, value);
  return {micro};
}

// A step whose one gradient is the sum of what it reads, times `factor`.
class Toy {
 public:
  explicit Toy(double factor = 1) : factor_(factor) {}

  StepGraphs make() {
    return StepGraphs(
        torch::kCPU,
        [this](const StepInputs& inputs) {
          ++computed;
          const torch::Tensor& latents = inputs.front().parts.front().latents;
          gradient.copy_(latents.sum() * factor_);
          return torch::stack({latents.mean(), torch::zeros({})});
        },
        [this] { return std::vector<torch::Tensor>{gradient}; });
  }
  void change_factor(double factor) { factor_ = factor; }

  torch::Tensor gradient = torch::zeros({});
  int computed = 0;

 private:
  double factor_;
};

TEST(StepGraphs, ReplaysWithTheInputsOfEachStep) {
  const model::GraphStandIn stand_in(work_again);
  Toy toy;
  StepGraphs graphs = toy.make();
  for (int step = 0; step < 8; ++step) {
    const torch::Tensor losses = graphs.compute(inputs_of(step, 3));
    EXPECT_EQ(losses[0].item<double>(), step);
    EXPECT_EQ(toy.gradient.item<double>(), 3 * step);
    EXPECT_EQ(graphs.replays(), std::max<std::int64_t>(0, step + 1 - StepGraphs::kWarmUp)) << step;
  }
  EXPECT_EQ(graphs.graphs(), 1U);
  EXPECT_TRUE(graphs.warnings().empty());
}

// With one shape more than graphs, to keep the newest ones would capture all of them again and again, at the price of
// four steps each time.
TEST(StepGraphs, OfTooManyShapesTheFirstHaveGraphs) {
  int captures = 0;
  const model::GraphStandIn stand_in([&captures](const Work& work, const model::DeviceGraph*) {
    ++captures;
    return std::make_unique<WorkAgain>(work);
  });
  Toy toy;
  StepGraphs graphs = toy.make();
  const std::int64_t shapes = StepGraphs::kMostGraphs + 1;
  for (std::int64_t step = 0; step < 50; ++step) {
    const std::int64_t samples = step % shapes + 1;
    EXPECT_EQ(graphs.compute(inputs_of(static_cast<double>(step), samples))[0].item<double>(), step);
    EXPECT_EQ(toy.gradient.item<double>(), samples * step);
  }
  EXPECT_EQ(captures, 4);
  EXPECT_EQ(graphs.graphs(), StepGraphs::kMostGraphs);
  EXPECT_EQ(graphs.replays(), 4 * (50 / shapes - StepGraphs::kWarmUp));
  const std::vector<Problem> warnings = graphs.warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings.front().line().find("more than 4 shapes"), std::string::npos) << warnings.front().line();
}

// A run that stops training its text encoders has other shapes from then on.
TEST(StepGraphs, AGraphOutOfUseMakesRoom) {
  const model::GraphStandIn stand_in(work_again);
  Toy toy;
  StepGraphs graphs = toy.make();
  const std::int64_t most = StepGraphs::kMostGraphs;
  for (std::int64_t samples = 1; samples <= most; ++samples) {
    for (int step = 0; step <= StepGraphs::kWarmUp; ++step) graphs.compute(inputs_of(step, samples));
  }
  std::int64_t before = graphs.replays();
  auto idle = (most - 1) * (StepGraphs::kWarmUp + 1);  // steps since the first graph was used
  for (; idle < static_cast<std::int64_t>(StepGraphs::kIdleSteps); ++idle) graphs.compute(inputs_of(1, most + 1));
  EXPECT_EQ(graphs.replays(), before);
  graphs.compute(inputs_of(1, most + 1));
  EXPECT_EQ(graphs.replays(), before + 1);
  EXPECT_EQ(graphs.graphs(), StepGraphs::kMostGraphs);
  before = graphs.replays();
  graphs.compute(inputs_of(2, most));
  graphs.compute(inputs_of(2, most + 1));
  EXPECT_EQ(graphs.replays(), before + 2);  // the newest of the old ones is still there
  EXPECT_EQ(toy.gradient.item<double>(), 2 * static_cast<double>(most + 1));
}

// Activations of several shapes would else take their memory several times.
TEST(StepGraphs, ShareTheirMemory) {
  std::vector<const model::DeviceGraph*> graphs_there, beside;
  const model::GraphStandIn stand_in([&](const Work& work, const model::DeviceGraph* other) {
    auto graph = std::make_unique<WorkAgain>(work);
    beside.push_back(other);
    graphs_there.push_back(graph.get());
    return graph;
  });
  Toy toy;
  StepGraphs graphs = toy.make();
  for (std::int64_t samples = 1; samples <= 2; ++samples) {
    for (int step = 0; step <= StepGraphs::kWarmUp; ++step) graphs.compute(inputs_of(step, samples));
  }
  ASSERT_EQ(beside.size(), 2U);
  EXPECT_EQ(beside[0], nullptr);
  EXPECT_EQ(beside[1], graphs_there[0]);
  graphs.clear();
  for (int step = 0; step <= StepGraphs::kWarmUp; ++step) graphs.compute(inputs_of(step, 1));
  ASSERT_EQ(beside.size(), 3U);
  EXPECT_EQ(beside[2], nullptr);  // what is gone has no memory to share
}

TEST(StepGraphs, StaysEagerWhereTheGraphDiffers) {
  Toy toy;
  const model::GraphStandIn stand_in([&toy](const Work& work, const model::DeviceGraph*) {
    return std::make_unique<WorkAgain>([&toy, work] {
      toy.change_factor(1.5);
      work();
      toy.change_factor(1);
    });
  });
  StepGraphs graphs = toy.make();
  for (int step = 1; step < 8; ++step) {
    EXPECT_EQ(graphs.compute(inputs_of(step, 2))[0].item<double>(), step);
    EXPECT_EQ(toy.gradient.item<double>(), 2 * step);
  }
  EXPECT_EQ(graphs.graphs(), 0U);
  const std::vector<Problem> warnings = graphs.warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings.front().line().find("cuda_graphs"), std::string::npos) << warnings.front().line();
  EXPECT_NE(warnings.front().line().find("differs from the eager step"), std::string::npos) << warnings.front().line();
}

// Kernels that add in an order of their own: a graph may differ about as much as eager steps do, and no more.
TEST(StepGraphs, MayDifferAsEagerStepsDo) {
  for (const double replayed : {1.0, 1.25, 1.75}) {
    bool is_replay = false;
    int eager_steps = 0;
    torch::Tensor gradient = torch::zeros({});
    StepGraphs graphs(
        torch::kCPU,
        [&](const StepInputs&) {
          gradient.fill_(is_replay ? replayed : 1 + 0.25 * (eager_steps++ % 2));
          return torch::zeros({2});
        },
        [&] { return std::vector<torch::Tensor>{gradient}; });
    const model::GraphStandIn stand_in([&is_replay](const Work& work, const model::DeviceGraph*) {
      return std::make_unique<WorkAgain>([&is_replay, work] {
        is_replay = true;
        work();
        is_replay = false;
      });
    });
    for (int step = 0; step <= StepGraphs::kWarmUp; ++step) graphs.compute(inputs_of(1, 2));
    EXPECT_EQ(graphs.graphs(), replayed < 1.5 ? 1U : 0U) << replayed;
  }
}

// Ten gradients with noise of a hundredth in every run, of which a replay multiplies the first by `factor`.
class NoisyToy {
 public:
  NoisyToy(std::uint32_t seed, double factor) : engine_(seed), factor_(factor) {
    for (int i = 0; i < 10; ++i) gradients_.push_back(torch::zeros({}));
  }

  bool gets_a_graph() {
    const model::GraphStandIn stand_in([this](const Work& work, const model::DeviceGraph*) {
      return std::make_unique<WorkAgain>([this, work] {
        is_replay_ = true;
        work();
        is_replay_ = false;
      });
    });
    StepGraphs graphs(
        torch::kCPU, [this](const StepInputs&) { return compute(); }, [this] { return gradients_; });
    for (int step = 0; step <= StepGraphs::kWarmUp; ++step) graphs.compute(inputs_of(1, 2));
    return graphs.graphs() == 1;
  }

 private:
  // About normal, with a standard deviation of 1.
  double noise() {
    double sum = -2;
    for (int i = 0; i < 4; ++i) sum += static_cast<double>(engine_()) / 4294967296.0;
    return sum * std::sqrt(3.0);
  }
  torch::Tensor compute() {
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      const double value = static_cast<double>(i + 1) * (1 + 0.01 * noise());
      gradients_[i].fill_(is_replay_ && i == 0 ? factor_ * value : value);
    }
    return torch::zeros({2});
  }

  std::mt19937 engine_;
  double factor_;
  bool is_replay_ = false;
  std::vector<torch::Tensor> gradients_;
};

// That one of two runs is farther from the first than the other is chance.
TEST(StepGraphs, NoiseDecidesNothing) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    EXPECT_TRUE(NoisyToy(seed, 1).gets_a_graph()) << seed;
    EXPECT_FALSE(NoisyToy(seed, 1.5).gets_a_graph()) << seed;  // the mutant: one gradient of ten
  }
}

TEST(StepGraphs, StaysEagerWhereTheGraphReadsOldInputs) {
  bool is_replay = false;
  torch::Tensor gradient = torch::zeros({}), old;
  StepGraphs graphs(
      torch::kCPU,
      [&](const StepInputs& inputs) {
        const torch::Tensor& latents = inputs.front().parts.front().latents;
        if (!old.defined()) old = latents.clone();
        const torch::Tensor& read = is_replay ? old : latents;
        gradient.copy_(read.sum());
        return torch::stack({read.mean(), torch::zeros({})});
      },
      [&] { return std::vector<torch::Tensor>{gradient}; });
  const model::GraphStandIn stand_in([&is_replay](const Work& work, const model::DeviceGraph*) {
    return std::make_unique<WorkAgain>([&is_replay, work] {
      is_replay = true;
      work();
      is_replay = false;
    });
  });
  for (int step = 0; step <= StepGraphs::kWarmUp; ++step) graphs.compute(inputs_of(1 + 0.01 * step, 2));
  EXPECT_EQ(graphs.graphs(), 0U);
  EXPECT_EQ(graphs.warnings().size(), 1U);
}

TEST(StepGraphs, StaysEagerWhereNothingCanBeCaptured) {
  const model::GraphStandIn stand_in([](const Work&, const model::DeviceGraph*) -> std::unique_ptr<model::DeviceGraph> {
    TORCH_CHECK(false, "operation not permitted when stream is capturing");
  });
  Toy toy;
  StepGraphs graphs = toy.make();
  for (int step = 0; step < 6; ++step) EXPECT_EQ(graphs.compute(inputs_of(step, 2))[0].item<double>(), step);
  EXPECT_EQ(graphs.graphs(), 0U);
  const std::vector<Problem> warnings = graphs.warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings.front().line().find("not permitted"), std::string::npos) << warnings.front().line();
}

// They throw no c10::Error (model/kernels/cuda/launch.cuh).
TEST(StepGraphs, StaysEagerWhereALaunchOfOurKernelsIsRefused) {
  const model::GraphStandIn stand_in([](const Work&, const model::DeviceGraph*) -> std::unique_ptr<model::DeviceGraph> {
    throw std::runtime_error("kernel geglu_forward on cuda:0: operation not permitted when stream is capturing");
  });
  Toy toy;
  StepGraphs graphs = toy.make();
  for (int step = 0; step < 6; ++step) EXPECT_EQ(graphs.compute(inputs_of(step, 2))[0].item<double>(), step);
  EXPECT_EQ(graphs.graphs(), 0U);
  const std::vector<Problem> warnings = graphs.warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings.front().line().find("geglu_forward"), std::string::npos) << warnings.front().line();
}

TEST(StepGraphs, WaitWhereGradientsAreNotFinite) {
  const model::GraphStandIn stand_in(work_again);
  Toy toy;
  StepGraphs graphs = toy.make();
  for (int step = 0; step <= StepGraphs::kWarmUp; ++step) {
    graphs.compute(inputs_of(std::numeric_limits<double>::infinity(), 2));
  }
  EXPECT_EQ(graphs.graphs(), 0U);
  EXPECT_TRUE(graphs.warnings().empty());
  graphs.compute(inputs_of(1, 2));
  EXPECT_EQ(graphs.graphs(), 1U);
}

class GraphedRun : public testing::Test {
 protected:
  void SetUp() override { test::write_tiny_training(scratch_); }

  // Losses and weights of 9 steps.
  std::vector<torch::Tensor> train(bool graphs, std::int64_t& replays) {
    TrainConfig config;
    config.run.base = (scratch_.path() / "base").string();
    config.run.output = (scratch_.path() / "run").string();
    config.run.train_batch_size = 4;
    config.run.gradient_accumulation_steps = 2;
    config.run.micro_batch = "2";
    config.run.max_train_steps = 9;
    config.run.train_text_encoder = true;
    config.optim.train_text_encoder_frac = 0.5;  // the second half are other operators
    config.data.images = (scratch_.path() / "photos").string();
    config.data.instance_prompt = "a";
    config.optim.learning_rate = 1e-3;
    const Preflight preflight = run_preflight(config, test::NoPortraitReaders(), PhotoUse::kTrain);
    config.run.cuda_graphs = graphs;  // which the preflight refuses on a CPU
    const auto run = build_run(config, std::make_unique<SingleProcess>(), torch::kCPU, preflight, {}, stop_);
    run->uses_chunks = false;  // as on a GPU
    std::vector<torch::Tensor> results;
    for (std::uint64_t step = 0; step < 9; ++step) results.push_back(train_step(*run, step)[kLossInstance].clone());
    for (const TrainedParameter& parameter : run->shards->parameters()) results.push_back(parameter.weight.clone());
    replays = graphs ? run->graphs->replays() : 0;
    EXPECT_TRUE(run->warnings.empty()) << run->warnings.front().line();
    return results;
  }

  test::ScratchFolder scratch_;
  StopFlag stop_;
};

TEST_F(GraphedRun, TrainsTheSameWeights) {
  std::int64_t replays = 0;
  const std::vector<torch::Tensor> eager = train(false, replays);
  const model::GraphStandIn stand_in(work_again);
  const std::vector<torch::Tensor> graphed = train(true, replays);
  EXPECT_EQ(replays, 9 - 2 * StepGraphs::kWarmUp);  // two shapes: with the text encoder, and without
  ASSERT_EQ(eager.size(), graphed.size());
  for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(eager[i].equal(graphed[i])) << i;
}

}  // namespace
}  // namespace sdtune::train
