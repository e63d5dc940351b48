#include "train/portrait/pretrain/stage_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/core/random.h"
#include "tests/support/scratch_folder.h"
#include "train/portrait/pretrain/stage_result.h"

namespace sdtune::train::pretrain {
namespace {

// A linear model that has to find a fixed vector from noisy sums: every step has its own numbers.
class LinearStage final : public Stage {
 public:
  LinearStage() : weight_(torch::zeros({8})) {}
  std::string name() const override { return "linear"; }
  std::vector<NamedParameter> parameters() const override { return {{"weight", weight_}}; }
  std::int64_t batch_size() const override { return 16; }
  torch::Tensor loss(std::uint64_t step) override {
    const torch::Tensor input = model::draw_normal({1, model::Draw::kNoise, step, 0}, {16, 8});
    const torch::Tensor target = input.matmul(torch::arange(8, torch::kFloat32) / 8);
    if (on_step) on_step(step);
    const double factor = is_broken && is_broken(step) ? std::numeric_limits<double>::quiet_NaN() : 1.0;
    return (input.matmul(weight_) - target).square().mean() * factor;
  }
  torch::Tensor weight() const { return weight_.detach().clone(); }
  std::function<void(std::uint64_t)> on_step;
  std::function<bool(std::uint64_t)> is_broken;  // whose loss is NaN

 private:
  torch::Tensor weight_;
};

StagePlan plan_in(const std::filesystem::path& folder) {
  StagePlan plan;
  plan.folder = folder;
  plan.total_steps = 200;
  plan.warmup_steps = 10;
  plan.checkpoint_steps = 64;
  plan.average_decay = 0.9;
  plan.optim.learning_rate = 0.05;
  plan.optim.adam_weight_decay = 0;
  plan.identity.settings = {{"seed", "1"}};
  return plan;
}

torch::Tensor trained_straight(const std::filesystem::path& folder) {
  LinearStage stage;
  StageLoop loop(stage, plan_in(folder), {});
  EXPECT_EQ(loop.run({}), StageEnd::kFinished);
  loop.settle();
  return stage.weight();
}

TEST(StageLoop, FindsTheMinimum) {
  const test::ScratchFolder scratch;
  const torch::Tensor found = trained_straight(scratch.path());
  EXPECT_LT((found - torch::arange(8, torch::kFloat32) / 8).abs().max().item<float>(), 0.02);
}

// What a finished stage hands on is enough for those after it: checkpoints may go.
TEST(StageLoop, IsFinishedByItsResultAlone) {
  const test::ScratchFolder scratch;
  const torch::Tensor expected = trained_straight(scratch.path());
  std::filesystem::remove_all(scratch.path() / "checkpoints");
  LinearStage stage;
  stage.on_step = [](std::uint64_t) { FAIL() << "trained again"; };
  StageLoop loop(stage, plan_in(scratch.path()), {});
  EXPECT_EQ(loop.step(), 200);
  EXPECT_EQ(loop.run({}), StageEnd::kFinished);
  loop.settle();
  EXPECT_TRUE(stage.weight().equal(expected));
}

TEST(StageLoop, GoesOnToTheSameBitsAfterAStop) {
  const test::ScratchFolder straight, broken;
  const torch::Tensor expected = trained_straight(straight.path());
  StopFlag stop;
  {
    LinearStage stage;
    stage.on_step = [&](std::uint64_t step) {
      if (step == 76) stop.request(SIGTERM);
    };
    StageLoop loop(stage, plan_in(broken.path()), {});
    StageLimits limits;
    limits.stop = &stop;
    EXPECT_EQ(loop.run(limits), StageEnd::kStopped);
    EXPECT_EQ(loop.step(), 77);
  }
  LinearStage stage;
  StageLoop loop(stage, plan_in(broken.path()), {});
  EXPECT_EQ(loop.step(), 77);
  EXPECT_EQ(loop.run({}), StageEnd::kFinished);
  loop.settle();
  EXPECT_TRUE(stage.weight().equal(expected));
}

TEST(StageLoop, NamesADamagedCheckpointThatItPassesOver) {
  const test::ScratchFolder straight, broken;
  const torch::Tensor expected = trained_straight(straight.path());
  trained_straight(broken.path());
  std::vector<std::filesystem::path> checkpoints;
  for (const auto& entry : std::filesystem::directory_iterator(broken.path() / "checkpoints")) {
    if (entry.is_directory()) checkpoints.push_back(entry.path());
  }
  std::sort(checkpoints.begin(), checkpoints.end());
  ASSERT_GE(checkpoints.size(), 2u);
  std::filesystem::resize_file(checkpoints.back() / "state.json", 5);
  std::vector<std::string> lines;
  StagePlan plan = plan_in(broken.path());
  plan.on_line = [&](const std::string& line) { lines.push_back(line); };
  LinearStage stage;
  StageLoop loop(stage, plan, {});
  EXPECT_LT(loop.step(), 200);
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines.front().find(checkpoints.back().string()), std::string::npos) << lines.front();
  EXPECT_EQ(loop.run({}), StageEnd::kFinished);
  loop.settle();
  EXPECT_TRUE(stage.weight().equal(expected));
}

TEST(StageLoop, StopsAtTheDeadlineAndRefusesAnotherRunsCheckpoint) {
  const test::ScratchFolder scratch;
  LinearStage stage;
  StageLoop loop(stage, plan_in(scratch.path()), {});
  StageLimits limits;
  limits.deadline = std::chrono::steady_clock::now();
  EXPECT_EQ(loop.run(limits), StageEnd::kOutOfTime);
  StagePlan other = plan_in(scratch.path());
  other.identity.settings = {{"seed", "2"}};
  EXPECT_THROW(StageLoop(stage, other, {}), ConfigError);
}

// What the step needs was not there before the limits: it is not counted, and is done again.
TEST(StageLoop, SavesWhereAWaitWasEnded) {
  const test::ScratchFolder straight, scratch;
  const torch::Tensor expected = trained_straight(straight.path());
  StopFlag stop;
  {
    LinearStage stage;
    stage.on_step = [&](std::uint64_t step) {
      if (step != 76) return;
      stop.request(SIGTERM);
      throw WaitEnded();
    };
    StageLoop loop(stage, plan_in(scratch.path()), {});
    StageLimits limits;
    limits.stop = &stop;
    EXPECT_EQ(loop.run(limits), StageEnd::kStopped);
    EXPECT_EQ(loop.step(), 76);
  }
  LinearStage stage;
  StageLoop loop(stage, plan_in(scratch.path()), {});
  EXPECT_EQ(loop.step(), 76);
  EXPECT_EQ(loop.run({}), StageEnd::kFinished);
  loop.settle();
  EXPECT_TRUE(stage.weight().equal(expected));
}

// Killed behind the last checkpoint: the same command makes up for the result, which checkpoints may then go for.
TEST(StageLoop, WritesAResultThatIsMissing) {
  const test::ScratchFolder scratch;
  const torch::Tensor expected = trained_straight(scratch.path());
  for (const bool is_of_fewer_steps : {false, true}) {
    std::filesystem::remove(scratch.path() / "result.json");
    if (is_of_fewer_steps) {
      ResumeFingerprint identity = plan_in(scratch.path()).identity;
      write_stage_result(real_file_system(), scratch.path(), identity, 100, {{"weight", torch::zeros({8})}});
    }
    LinearStage stage;
    EXPECT_EQ(StageLoop(stage, plan_in(scratch.path()), {}).run({}), StageEnd::kFinished);
    const torch::Tensor found = torch::zeros({8});
    EXPECT_TRUE(
        load_stage_result(scratch.path(), "linear", plan_in(scratch.path()).identity, 200, {{"weight", found}}));
    EXPECT_TRUE(found.equal(expected));
  }
}

TEST(StageLoop, RefusesFewerStepsThanItsCheckpointHasDone) {
  const test::ScratchFolder scratch;
  trained_straight(scratch.path());
  StagePlan shorter = plan_in(scratch.path());
  shorter.total_steps = 199;
  LinearStage stage;
  try {
    StageLoop(stage, shorter, {});
    FAIL() << "must be refused";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems().front().where, "linear_steps");
    EXPECT_NE(error.problems().front().what.find("(got 199; allowed: at least 200)"), std::string::npos);
  }
}

TEST(StageLoop, LeavesOutStepsWhoseLossIsNotFinite) {
  const test::ScratchFolder scratch;
  LinearStage stage;
  constexpr std::uint64_t kFirst = 40, kLast = kFirst + static_cast<std::uint64_t>(StageLoop::kMostNonFinite) - 2;
  stage.is_broken = [](std::uint64_t step) { return step == 7 || (step >= kFirst && step <= kLast); };
  std::vector<double> losses;
  StageLoop loop(stage, plan_in(scratch.path()), [&](const StageProgress& now) { losses.push_back(now.loss); });
  EXPECT_EQ(loop.run({}), StageEnd::kFinished);
  loop.settle();
  EXPECT_LT((stage.weight() - torch::arange(8, torch::kFloat32) / 8).abs().max().item<float>(), 0.02);
  EXPECT_EQ(losses.size(), 10u);
  for (const double loss : losses) EXPECT_TRUE(std::isfinite(loss));
}

TEST(StageLoop, EndsWhereNoLossIsFiniteAnyMore) {
  const test::ScratchFolder scratch;
  LinearStage stage;
  constexpr std::uint64_t kFirst = 70;
  stage.is_broken = [](std::uint64_t step) {
    return step >= kFirst && step < kFirst + static_cast<std::uint64_t>(StageLoop::kMostNonFinite);
  };
  StageLoop loop(stage, plan_in(scratch.path()), {});
  try {
    loop.run({});
    FAIL() << "must end";
  } catch (const NonFiniteError& error) {
    EXPECT_NE(error.problems().front().what.find("10 steps in a row before step 80"), std::string::npos);
    EXPECT_NE(error.problems().front().hint.find("another --output"), std::string::npos);
  }
}

TEST(StageLoop, TheRateWarmsUpStaysAndFalls) {
  StagePlan plan;
  plan.total_steps = 1000;
  plan.warmup_steps = 100;
  EXPECT_DOUBLE_EQ(learning_rate_factor(plan, 0), 0.01);
  EXPECT_DOUBLE_EQ(learning_rate_factor(plan, 99), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate_factor(plan, 600), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate_factor(plan, 800), 0.5);
  EXPECT_LT(learning_rate_factor(plan, 999), 0.003);
}

}  // namespace
}  // namespace sdtune::train::pretrain
