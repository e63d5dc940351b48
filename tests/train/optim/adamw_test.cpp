#include "train/optim/adamw.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>

namespace sdtune::train {
namespace {

constexpr std::int64_t kCount = 70001;  // several runs, and a tail that fills no vector
constexpr double kRate = 1e-3;

OptimOptions options_with_decay(double decay) {
  OptimOptions options;
  options.adam_weight_decay = decay;
  return options;
}

torch::Tensor rates(double rate) {
  return torch::full({2}, rate, torch::kFloat64);
}

// AdamW in double, from the paper: what the fused pass must give to float32's precision.
struct Reference {
  torch::Tensor weight, mean, square;
  std::int64_t t = 0;

  explicit Reference(const torch::Tensor& start)
      : weight(start.to(torch::kFloat64)), mean(torch::zeros_like(weight)), square(torch::zeros_like(weight)) {}

  void step(const torch::Tensor& gradient, double rate, const OptimOptions& options, bool coupled = false) {
    ++t;
    torch::Tensor g = gradient.to(torch::kFloat64);
    if (coupled) g = g + options.adam_weight_decay * weight;
    if (!coupled) weight = weight * (1 - rate * options.adam_weight_decay);
    mean = options.adam_beta1 * mean + (1 - options.adam_beta1) * g;
    square = options.adam_beta2 * square + (1 - options.adam_beta2) * g * g;
    const torch::Tensor denominator = (square / (1 - std::pow(options.adam_beta2, t))).sqrt() + options.adam_epsilon;
    weight = weight - rate / (1 - std::pow(options.adam_beta1, t)) * mean / denominator;
  }
};

double relative(const torch::Tensor& got, const torch::Tensor& expected) {
  return ((got.to(torch::kFloat64) - expected).norm() / expected.norm()).item<double>();
}

class AdamWTest : public ::testing::Test {
 protected:
  AdamWTest() { torch::manual_seed(0); }
  const torch::NoGradGuard no_grad_;
};

// The change of the weights after ten steps beside the reference's.
double error_of_update(bool decay_left_out, bool coupled) {
  const OptimOptions options = options_with_decay(0.1);
  const torch::Tensor start = torch::randn({kCount});
  const torch::Tensor weight = start.clone();
  const torch::Tensor gradient = torch::zeros_like(weight);
  AdamW optimizer({{"w", weight, gradient, {}, 0}}, options);
  Reference reference(start);
  const OptimOptions reference_options = decay_left_out ? options_with_decay(0) : options;
  for (int step = 0; step < 10; ++step) {
    gradient.copy_(torch::randn({kCount}));
    optimizer.step(rates(kRate), torch::scalar_tensor(0.5f));
    reference.step(0.5 * gradient, kRate, reference_options, coupled);
  }
  return relative(weight - start, reference.weight - start.to(torch::kFloat64));
}

TEST_F(AdamWTest, EqualsADoublePrecisionLoop) {
  EXPECT_LT(error_of_update(false, false), 1e-4);
}

TEST_F(AdamWTest, MutantsOfTheReferenceDiffer) {
  EXPECT_GT(error_of_update(true, false), 1e-3);
  EXPECT_GT(error_of_update(false, true), 1e-3);
}

TEST_F(AdamWTest, EachGroupHasItsRate) {
  const torch::Tensor fast = torch::zeros({4});
  const torch::Tensor slow = torch::zeros({4});
  AdamW optimizer({{"fast", fast, torch::ones({4}), {}, 0}, {"slow", slow, torch::ones({4}), {}, 1}},
                  options_with_decay(0));
  optimizer.step(torch::tensor({1e-2, 1e-3}, torch::kFloat64), torch::scalar_tensor(1.0f));
  EXPECT_NEAR(fast[0].item<float>(), -1e-2, 1e-6);
  EXPECT_NEAR(slow[0].item<float>(), -1e-3, 1e-7);
}

TEST_F(AdamWTest, WorksInTheMemoryFormatOfTheWeight) {
  const torch::Tensor start = torch::randn({8, 4, 3, 3});
  const torch::Tensor gradient = torch::randn({8, 4, 3, 3});
  const torch::Tensor plain = start.clone();
  const torch::Tensor last = start.clone().contiguous(torch::MemoryFormat::ChannelsLast);
  const torch::Tensor last_gradient = gradient.contiguous(torch::MemoryFormat::ChannelsLast);
  AdamW of_plain({{"w", plain, gradient, {}, 0}}, OptimOptions());
  AdamW of_last({{"w", last, last_gradient, {}, 0}}, OptimOptions());
  of_plain.step(rates(kRate), torch::scalar_tensor(1.0f));
  of_last.step(rates(kRate), torch::scalar_tensor(1.0f));
  EXPECT_TRUE(plain.equal(last));
}

}  // namespace
}  // namespace sdtune::train
