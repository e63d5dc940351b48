#include "train/run/step_graphs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
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

std::unique_ptr<model::DeviceGraph> work_again(const Work& work) {
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

TEST(StepGraphs, KeepsNewestShapes) {
  const model::GraphStandIn stand_in(work_again);
  Toy toy;
  StepGraphs graphs = toy.make();
  const std::int64_t shapes = StepGraphs::kMostGraphs + 1;
  for (std::int64_t samples = 1; samples <= shapes; ++samples) {
    for (int step = 0; step <= StepGraphs::kWarmUp; ++step) graphs.compute(inputs_of(step, samples));
  }
  EXPECT_EQ(graphs.graphs(), StepGraphs::kMostGraphs);
  const std::int64_t before = graphs.replays();
  toy.computed = 0;
  graphs.compute(inputs_of(1, 2));  // of the second shape there is one
  EXPECT_EQ(graphs.replays(), before + 1);
  EXPECT_EQ(toy.computed, 1);
  graphs.compute(inputs_of(1, 1));  // the first one's went: compared, captured anew
  EXPECT_EQ(toy.computed, 4);
  EXPECT_EQ(toy.gradient.item<double>(), 1);
  EXPECT_EQ(graphs.graphs(), StepGraphs::kMostGraphs);
}

TEST(StepGraphs, StaysEagerWhereTheGraphDiffers) {
  Toy toy;
  const model::GraphStandIn stand_in([&toy](const Work& work) {
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

// Kernels that add in an order of their own: a graph may differ by as much as two eager steps do, and no more.
TEST(StepGraphs, MayDifferAsTwoEagerStepsDo) {
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
    const model::GraphStandIn stand_in([&is_replay](const Work& work) {
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

TEST(StepGraphs, StaysEagerWhereNothingCanBeCaptured) {
  const model::GraphStandIn stand_in([](const Work&) -> std::unique_ptr<model::DeviceGraph> {
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
