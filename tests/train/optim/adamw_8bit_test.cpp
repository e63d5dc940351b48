#include "train/optim/adamw_8bit.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "train/optim/adamw.h"
#include "train/optim/dynamic_code.h"

namespace sdtune::train {
namespace {

// The nearest entry by looking at all of them.
std::uint8_t nearest_of_all(const DynamicCode& code, float x) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < code.values().size(); ++i) {
    const bool is_nearer = x > code.midpoints()[i - 1];
    if (is_nearer) best = i;
  }
  return static_cast<std::uint8_t>(best);
}

void expect_nearest(const DynamicCode& code, float x) {
  EXPECT_EQ(static_cast<int>(code.nearest(x)), static_cast<int>(nearest_of_all(code, x))) << x;
}

TEST(DynamicCode, FindsTheNearestEntry) {
  std::mt19937 draw(0);
  for (const DynamicCode* code : {&DynamicCode::with_sign(), &DynamicCode::without_sign()}) {
    const float least = code->values().front();
    for (const float midpoint : code->midpoints()) {
      expect_nearest(*code, midpoint);
      expect_nearest(*code, std::nextafter(midpoint, 2.0F));
      expect_nearest(*code, std::nextafter(midpoint, -2.0F));
    }
    for (const float value : code->values()) expect_nearest(*code, value);
    for (int i = 0; i < 20000; ++i) {
      const float magnitude = std::pow(10.0F, std::uniform_real_distribution<float>(-9, 0)(draw));
      expect_nearest(*code, least < 0 && i % 2 == 0 ? -magnitude : magnitude);
    }
    expect_nearest(*code, 0.0F);
    expect_nearest(*code, least < 0 ? -1.0F : 0.0F);
    expect_nearest(*code, 1e-42F);
  }
}

TEST(DynamicCode, HasTheRangeOfThePaper) {
  const auto& with_sign = DynamicCode::with_sign().values();
  const auto& without_sign = DynamicCode::without_sign().values();
  EXPECT_EQ(with_sign[127], 0.0F);
  EXPECT_EQ(without_sign[0], 0.0F);
  EXPECT_EQ(with_sign.back(), 1.0F);
  EXPECT_EQ(without_sign.back(), 1.0F);
  EXPECT_TRUE(std::is_sorted(with_sign.begin(), with_sign.end()));
  EXPECT_NEAR(with_sign[128], 0.55e-6, 1e-12);
  EXPECT_NEAR(without_sign[1], 0.325e-6, 1e-12);
}

class AdamW8bitTest : public ::testing::Test {
 protected:
  AdamW8bitTest() { torch::manual_seed(0); }
  const torch::NoGradGuard no_grad_;
};

torch::Tensor rates() {
  return torch::full({1}, 1e-3, torch::kFloat64);
}

std::int64_t bytes_of(const Optimizer& optimizer) {
  std::int64_t bytes = 0;
  for (const auto& [name, state] : optimizer.states()) bytes += static_cast<std::int64_t>(state.nbytes());
  return bytes;
}

TEST_F(AdamW8bitTest, NeedsAQuarterOfTheMemory) {
  const std::vector<TrainedParameter> parameters = {
      {"matrix", torch::zeros({320, 1280}), torch::zeros({320, 1280}), {}, 0},
      {"bias", torch::zeros({320}), torch::zeros({320}), {}, 0}};
  const double full = static_cast<double>(bytes_of(AdamW(parameters, OptimOptions())));
  const double coded = static_cast<double>(bytes_of(AdamW8bit(parameters, OptimOptions())));
  EXPECT_GT(full / coded, 3.9);
}

TEST_F(AdamW8bitTest, KeepsSmallParametersInFloat32) {
  const torch::Tensor start = torch::randn({4095});
  const torch::Tensor gradient = torch::randn({4095});
  const torch::Tensor coded = start.clone(), full = start.clone();
  AdamW8bit of_coded({{"w", coded, gradient, {}, 0}}, OptimOptions());
  AdamW of_full({{"w", full, gradient, {}, 0}}, OptimOptions());
  for (int step = 0; step < 3; ++step) {
    of_coded.step(rates(), torch::scalar_tensor(1.0F));
    of_full.step(rates(), torch::scalar_tensor(1.0F));
  }
  EXPECT_TRUE(coded.equal(full));
  EXPECT_EQ(of_coded.states().front().second.scalar_type(), torch::kFloat32);
}

// LibTorch's operators, which a GPU takes, beside the pass over memory: chosen here by the memory format.
TEST_F(AdamW8bitTest, TwoWaysOfComputingAgree) {
  const torch::Tensor start = torch::randn({40, 24, 3, 3});
  const torch::Tensor by_pass = start.clone();
  const torch::Tensor by_operators = start.clone().contiguous(torch::MemoryFormat::ChannelsLast);
  const torch::Tensor gradient = torch::zeros_like(by_pass), other_gradient = torch::zeros_like(by_operators);
  AdamW8bit first({{"w", by_pass, gradient, {}, 0}}, OptimOptions());
  AdamW8bit second({{"w", by_operators, other_gradient, {}, 0}}, OptimOptions());
  for (int step = 0; step < 10; ++step) {
    gradient.copy_(torch::randn(start.sizes()));
    other_gradient.copy_(gradient);
    first.step(rates(), torch::scalar_tensor(0.5F));
    second.step(rates(), torch::scalar_tensor(0.5F));
  }
  // Roundings may send a moment that lies on a border to the neighbouring code.
  EXPECT_LT(((by_pass - by_operators).norm() / (by_pass - start).norm()).item<double>(), 1e-4);
  const torch::Tensor codes = first.states()[0].second, other_codes = second.states()[0].second;
  EXPECT_LT(codes.ne(other_codes).to(torch::kFloat32).mean().item<double>(), 1e-3);
  EXPECT_TRUE(torch::allclose(first.states()[1].second, second.states()[1].second, 1e-5, 0));
}

}  // namespace
}  // namespace sdtune::train
