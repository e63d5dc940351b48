// What every optimizer promises, whatever its arithmetic; that is compared with independent statements of each in
// tests/python/test_optimizers.py.
#include "train/optim/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "model/base/error.h"

namespace sdtune::train {
namespace {

constexpr std::int64_t kLarge = 70001;  // several runs, and a tail that fills neither a block nor a vector

OptimOptions options_of(const std::string& name) {
  OptimOptions options;
  options.optimizer = name;
  options.learning_rate = 1;  // prodigy asks for it; the steps below have rates of their own
  return options;
}

// Prodigy multiplies its own step, 1e-6 at first, by the rate.
double rate_for(const std::string& name) {
  return name == "prodigy" ? 1e3 : 1e-2;
}

// A large vector in the first group, a matrix and a small vector in the second.
struct Trained {
  std::vector<torch::Tensor> weights, gradients;
  std::unique_ptr<Optimizer> optimizer;

  Trained(const std::string& name, const std::vector<torch::Tensor>& starts, torch::Dtype dtype = torch::kFloat32,
          bool on_device = false) {
    std::vector<TrainedParameter> parameters;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      weights.push_back(starts[i].clone().to(dtype));
      gradients.push_back(torch::zeros_like(weights.back()));
      const std::string parameter = std::string("w").append(std::to_string(i));
      parameters.push_back({parameter, weights.back(), gradients.back(), starts[i].clone(), i == 0 ? 0 : 1});
    }
    optimizer = make_optimizer(std::move(parameters), options_of(name), on_device);
  }

  // Gradients that depend on the step only: a direction that stays, so that prodigy's estimate grows, and noise.
  void step(int number, double first_rate, double second_rate, float factor = 0.5F) {
    torch::manual_seed(static_cast<std::uint64_t>(100 + number));
    for (const torch::Tensor& gradient : gradients) gradient.copy_(torch::randn(gradient.sizes()) + 1);
    optimizer->step(torch::tensor({first_rate, second_rate}, torch::kFloat64), torch::scalar_tensor(factor));
  }
};

// Relative difference of all weights.
double difference(const Trained& a, const Trained& b) {
  double sum = 0, norm = 0;
  for (std::size_t i = 0; i < a.weights.size(); ++i) {
    sum += (a.weights[i] - b.weights[i]).to(torch::kFloat64).square().sum().item<double>();
    norm += b.weights[i].to(torch::kFloat64).square().sum().item<double>();
  }
  return std::sqrt(sum / norm);
}

std::vector<torch::Tensor> starts() {
  torch::manual_seed(0);
  return {torch::randn({kLarge}), torch::randn({96, 64}), torch::randn({7})};
}

class EveryOptimizer : public ::testing::TestWithParam<const char*> {
 protected:
  const torch::NoGradGuard no_grad_;
  const double rate_ = rate_for(GetParam());
};

TEST_P(EveryOptimizer, MovesEveryWeightAndItsOwnMaster) {
  Trained trained(GetParam(), starts());
  trained.step(0, rate_, rate_);
  trained.step(1, rate_, rate_);
  for (std::size_t i = 0; i < trained.weights.size(); ++i) {
    EXPECT_FALSE(trained.weights[i].equal(starts()[i])) << i;
    EXPECT_TRUE(trained.weights[i].isfinite().all().item<bool>()) << i;
    EXPECT_EQ(trained.optimizer->masters()[i].data_ptr(), trained.weights[i].data_ptr()) << i;
  }
  EXPECT_EQ(trained.optimizer->updates().item<std::int64_t>(), 2);
}

TEST_P(EveryOptimizer, KeepsHalfWeightsAsRoundedMasters) {
  for (const torch::ScalarType dtype : {torch::kBFloat16, torch::kFloat16}) {
    Trained trained(GetParam(), starts(), dtype);
    EXPECT_TRUE(trained.optimizer->masters()[0].equal(starts()[0]));
    for (int step = 0; step < 3; ++step) trained.step(step, rate_, rate_);
    for (std::size_t i = 0; i < trained.weights.size(); ++i) {
      const torch::Tensor& master = trained.optimizer->masters()[i];
      EXPECT_TRUE(trained.weights[i].equal(master.to(dtype))) << i;
      EXPECT_FALSE(master.equal(starts()[i])) << i;
    }
  }
}

TEST_P(EveryOptimizer, SkipsAStepWhoseFactorIsNotFinite) {
  Trained trained(GetParam(), starts()), untouched(GetParam(), starts());
  trained.step(0, rate_, rate_, NAN);
  trained.step(0, rate_, rate_, INFINITY);
  EXPECT_EQ(trained.optimizer->updates().item<std::int64_t>(), 0);
  for (std::size_t i = 0; i < trained.weights.size(); ++i) EXPECT_TRUE(trained.weights[i].equal(starts()[i])) << i;
  const NamedStates states = trained.optimizer->states(), fresh = untouched.optimizer->states();
  for (std::size_t i = 0; i < states.size(); ++i) EXPECT_TRUE(states[i].second.equal(fresh[i].second)) << i;
}

TEST_P(EveryOptimizer, LeavesAGroupAtRateZeroAsItIs) {
  Trained trained(GetParam(), starts());
  trained.step(0, rate_, rate_);
  const std::vector<torch::Tensor> before = {trained.weights[0].clone(), trained.weights[1].clone(),
                                             trained.weights[2].clone()};
  for (int step = 1; step < 4; ++step) trained.step(step, rate_, 0);
  EXPECT_FALSE(trained.weights[0].equal(before[0]));
  EXPECT_TRUE(trained.weights[1].equal(before[1]));
  EXPECT_TRUE(trained.weights[2].equal(before[2]));
}

// A fresh optimizer with the states of another does the same next steps, so a checkpoint that holds them is enough; and
// without any one of them it does not, so none is idle.
TEST_P(EveryOptimizer, GoesOnFromItsStates) {
  Trained whole(GetParam(), starts());
  for (int step = 0; step < 5; ++step) whole.step(step, rate_, rate_);
  const NamedStates states = whole.optimizer->states();
  std::vector<torch::Tensor> kept, weights;
  for (const auto& [name, state] : states) kept.push_back(state.clone());
  for (const torch::Tensor& weight : whole.weights) weights.push_back(weight.clone());
  for (int step = 5; step < 8; ++step) whole.step(step, rate_, rate_);
  const auto go_on = [&](std::size_t left_out) {
    Trained resumed(GetParam(), weights);
    const NamedStates targets = resumed.optimizer->states();
    for (std::size_t i = 0; i < targets.size(); ++i) {
      EXPECT_EQ(targets[i].first, states[i].first);
      torch::Tensor target = targets[i].second;
      if (i != left_out) target.copy_(kept[i]);
    }
    resumed.optimizer->set_updates(5);
    for (int step = 5; step < 8; ++step) resumed.step(step, rate_, rate_);
    bool equal = true;
    for (std::size_t i = 0; i < weights.size(); ++i) equal = equal && resumed.weights[i].equal(whole.weights[i]);
    return equal;
  };
  EXPECT_TRUE(go_on(states.size()));
  for (std::size_t i = 0; i < states.size(); ++i) EXPECT_FALSE(go_on(i)) << states[i].first;
}

// The first step of all is skipped, a later one too, and the second group rests for a while.
TEST_P(EveryOptimizer, ComputesTheSameWithoutReadingANumber) {
  Trained reading(GetParam(), starts());
  Trained on_device(GetParam(), starts(), torch::kFloat32, true);
  const double rate = rate_for(GetParam());
  int number = 0;
  for (const auto& [first, second, factor] : std::vector<std::tuple<double, double, float>>{{1, 1, NAN},
                                                                                            {1, 1, 0.5F},
                                                                                            {1, 1, 0.25F},
                                                                                            {1, 0, 0.5F},
                                                                                            {1, 1, INFINITY},
                                                                                            {0, 1, 0.5F},
                                                                                            {0, 0, 0.5F},
                                                                                            {1, 1, 1}}) {
    reading.step(number, first * rate, second * rate, factor);
    on_device.step(number, first * rate, second * rate, factor);
    EXPECT_LT(difference(on_device, reading), 1e-6) << "step " << number;
    ++number;
  }
  EXPECT_EQ(on_device.optimizer->updates().item<std::int64_t>(), reading.optimizer->updates().item<std::int64_t>());
  Trained other(GetParam(), starts());  // the mutant: one step with another factor
  for (int step = 0; step < number; ++step) other.step(step, rate, rate, step == 3 ? 0.9F : 0.5F);
  EXPECT_GT(difference(other, reading), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, EveryOptimizer, ::testing::Values("adamw", "adamw_8bit", "adafactor", "lion", "prodigy"));

TEST(MakeOptimizer, RefusesWhatContradictsItself) {
  OptimOptions options = options_of("lion");
  options.use_8bit_adam = true;
  EXPECT_EQ(optimizer_problems(options).size(), 1u);
  options.optimizer = "adamw";
  EXPECT_TRUE(optimizer_problems(options).empty());
  EXPECT_EQ(options.chosen_optimizer(), "adamw_8bit");
  OptimOptions prodigy = options_of("prodigy");
  EXPECT_TRUE(optimizer_problems(prodigy).empty());
  prodigy.learning_rate = 1e-4;
  EXPECT_EQ(optimizer_problems(prodigy).size(), 1u);
  prodigy.learning_rate = 1;
  prodigy.text_encoder_lr = 0.5;
  EXPECT_EQ(optimizer_problems(prodigy).size(), 1u);
  const torch::Tensor weight = torch::zeros({2});
  EXPECT_THROW(make_optimizer({{"w", weight, torch::zeros({2}), {}, 0}}, prodigy), ConfigError);
}

}  // namespace
}  // namespace sdtune::train
