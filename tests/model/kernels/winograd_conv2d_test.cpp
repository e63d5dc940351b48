#include "model/kernels/winograd_conv2d.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <tuple>

#include "model/core/cpu_implementation.h"
#include "model/kernels/float32_compute.h"
#include "model/kernels/packed_weights.h"
#include "model/products/cpu_vectors.h"
#include "tests/support/relative_error.h"

namespace sdtune::model {
namespace {

constexpr ConvShape kPadded = {.stride = 1, .padding = 1};

torch::Tensor channels_last(torch::IntArrayRef sizes, torch::Dtype dtype = torch::kFloat32) {
  return torch::randn(sizes).to(dtype).contiguous(torch::MemoryFormat::ChannelsLast);
}

torch::Tensor with_gradient(const torch::Tensor& tensor) {
  return tensor.detach().set_requires_grad(true);
}

torch::Tensor in_double(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  return torch::conv2d(x.to(torch::kFloat64), weight.to(torch::kFloat64),
                       bias.defined() ? bias.to(torch::kFloat64) : bias, 1, 1);
}

class Winograd : public testing::Test {
 protected:
  void SetUp() override {
    if (!vectors_of_this_cpu()) GTEST_SKIP() << "a CPU without AVX2 never takes it";
    torch::manual_seed(0);
  }
};

// batch, channels in, channels out, height, width
using WinogradCase = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>;
class WinogradCases : public Winograd, public testing::WithParamInterface<WinogradCase> {};

TEST_P(WinogradCases, AgreeWithDoublePrecisionForwardAndBackward) {
  const auto [batch, in, out, height, width] = GetParam();
  const torch::Tensor x = with_gradient(channels_last({batch, in, height, width})),
                      weight = with_gradient(torch::randn({out, in, 3, 3}));
  const torch::Tensor bias = with_gradient(torch::randn({out}));
  const torch::Tensor y = winograd_conv2d(x, weight, bias), expected = in_double(x, weight, bias);
  EXPECT_TRUE(y.is_contiguous(torch::MemoryFormat::ChannelsLast));
  EXPECT_LE(test::relative_error(y, expected), 3e-6);
  EXPECT_GT(test::relative_error(winograd_conv2d(x.flip(3), weight, bias), expected), 1e-2) << "a mirrored map";
  EXPECT_GT(test::relative_error(winograd_conv2d(x, weight.flip(2), bias), expected), 1e-2) << "turned kernels";
  const torch::Tensor dy = torch::randn(y.sizes());
  const auto ours = torch::autograd::grad({y}, {x, weight, bias}, {dy});
  const auto theirs = torch::autograd::grad({expected}, {x, weight, bias}, {dy.to(torch::kFloat64)});
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_LE(test::relative_error(ours[i], theirs[i]), 4e-6) << "leaf " << i;
  const auto mirrored = torch::autograd::grad({winograd_conv2d(x, weight, bias)}, {x, weight}, {dy.flip(3)});
  for (size_t i = 0; i < mirrored.size(); ++i) EXPECT_GT(test::relative_error(mirrored[i], theirs[i]), 1e-2) << i;
}

INSTANTIATE_TEST_SUITE_P(Shapes, WinogradCases,
                         testing::Values(WinogradCase{1, 16, 16, 4, 4}, WinogradCase{2, 32, 48, 8, 12},
                                         WinogradCase{2, 16, 32, 5, 7},       // tiles beyond the map
                                         WinogradCase{3, 32, 16, 2, 3},       // a map smaller than a tile
                                         WinogradCase{1, 544, 528, 6, 6},     // by panels
                                         WinogradCase{1, 544, 528, 36, 36},   // weights in several ranges
                                         WinogradCase{1, 48, 32, 104, 96}));  // tiles in several blocks

// Of an autoencoder's size: pixels, weight and bias as they are, products in float32, the result rounded once.
TEST_F(Winograd, OfBfloat16RoundsOnlyTheResult) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = channels_last({1, 64, 66, 64}, torch::kBFloat16),
                      weight = torch::randn({80, 64, 3, 3}).to(torch::kBFloat16),
                      bias = torch::randn({80}).to(torch::kBFloat16);
  ASSERT_TRUE(can_convolve_by_winograd(x, weight, kPadded));
  const torch::Tensor y = winograd_conv2d(x, weight, bias), expected = in_double(x, weight, bias);
  EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(y.is_contiguous(torch::MemoryFormat::ChannelsLast));
  const double rounding = test::relative_error(expected.to(torch::kBFloat16), expected);
  EXPECT_LE(test::relative_error(y, expected), 1.01 * rounding);
  EXPECT_GT(test::relative_error(winograd_conv2d(x, (weight * 1.004).to(torch::kBFloat16), bias), expected),
            1.01 * rounding);
  EXPECT_TRUE(winograd_conv2d(x, weight, bias, winograd_weight(weight)).equal(y));
  CpuImplementation implementation = default_cpu_implementation();
  implementation.bfloat16_winograd = true;  // also with AMX
  const CpuImplementationScope ours(implementation);
  EXPECT_TRUE(conv2d(x, weight, bias, kPadded).equal(y));
  PackedWeights packed;
  {
    const PackedWeightsScope scope(&packed);
    EXPECT_EQ(conv2d(x, weight, bias, kPadded).equal(y), computes_in_float32(x)) << "few pixels";
    const torch::Tensor large = channels_last({2, 64, 96, 96}, torch::kBFloat16);
    EXPECT_TRUE(conv2d(large, weight, bias, kPadded).equal(winograd_conv2d(large, weight, bias)));
  }
  implementation.bfloat16_winograd = false;
  const CpuImplementationScope direct(implementation);
  // A CPU without instructions for bfloat16 computes in float32, where Winograd's has its own choice.
  EXPECT_EQ(conv2d(x, weight, bias, kPadded).equal(y), computes_in_float32(x));
  implementation.winograd_convolutions = false;
  const CpuImplementationScope neither(implementation);
  EXPECT_FALSE(conv2d(x, weight, bias, kPadded).equal(y));
}

TEST_F(Winograd, NoBitDependsOnThreadsOrOnKeptWeights) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = channels_last({2, 64, 20, 20}), weight = torch::randn({64, 64, 3, 3}),
                      bias = torch::randn({64});
  const torch::Tensor expected = winograd_conv2d(x, weight, bias);
  EXPECT_TRUE(winograd_conv2d(x, weight, bias, winograd_weight(weight)).equal(expected));
  const int threads = at::get_num_threads();
  at::set_num_threads(threads == 1 ? 2 : 1);
  EXPECT_TRUE(winograd_conv2d(x, weight, bias).equal(expected));
  at::set_num_threads(threads);
}

TEST_F(Winograd, TakesNoOtherConvolutions) {
  const torch::Tensor x = channels_last({1, 64, 16, 16}), weight = torch::randn({64, 64, 3, 3});
  EXPECT_TRUE(can_convolve_by_winograd(x, weight, kPadded));
  EXPECT_FALSE(can_convolve_by_winograd(x, weight, {.stride = 2, .padding = 1}));
  EXPECT_FALSE(can_convolve_by_winograd(x, weight, {.stride = 1, .padding = 0}));
  EXPECT_FALSE(can_convolve_by_winograd(x, torch::randn({64, 64, 1, 1}), kPadded));
  EXPECT_FALSE(can_convolve_by_winograd(x.contiguous(), weight, kPadded));
  EXPECT_FALSE(can_convolve_by_winograd(x, weight.to(torch::kBFloat16), kPadded));
  const torch::Tensor large = channels_last({4, 64, 32, 32}, torch::kBFloat16), half = weight.to(torch::kBFloat16);
  EXPECT_TRUE(can_convolve_by_winograd(large, half, kPadded));
  EXPECT_TRUE(can_convolve_by_winograd(large, with_gradient(half), kPadded));
  EXPECT_FALSE(can_convolve_by_winograd(x, weight.contiguous(torch::MemoryFormat::ChannelsLast), kPadded));
  EXPECT_FALSE(can_convolve_by_winograd(x, torch::randn({72, 64, 3, 3}), kPadded));
  EXPECT_FALSE(can_convolve_by_winograd(x, torch::randn({64, 80, 3, 3}), kPadded)) << "not the map's channels";
  EXPECT_FALSE(can_convolve_by_winograd(channels_last({1, 64, 15, 15}), weight, kPadded)) << "too few pixels";
  EXPECT_FALSE(can_convolve_by_winograd(x, torch::randn({48, 64, 3, 3}), kPadded)) << "too few channels";
}

TEST_F(Winograd, LargeWeightsAreTransformedForSmallMapsByPanelsAlone) {
  const torch::Tensor weight = torch::empty({1280, 1280, 3, 3});
  CpuImplementation implementation;
  for (const bool by_panels : {true, false}) {
    implementation.winograd_panels = by_panels;
    const CpuImplementationScope scope(implementation);
    EXPECT_EQ(can_convolve_by_winograd(channels_last({1, 1280, 16, 16}), weight, kPadded), by_panels);
    EXPECT_TRUE(can_convolve_by_winograd(channels_last({1, 1280, 32, 32}), weight, kPadded));
    EXPECT_FALSE(can_convolve_by_winograd(channels_last({1, 1280, 8, 8}), weight, kPadded)) << "too few pixels";
  }
  EXPECT_FALSE(PackedWeights::keeps_winograd(weight));
  EXPECT_FALSE(PackedWeights::keeps_winograd(torch::empty({64, 64, 3, 3}, torch::kBFloat16)));
  EXPECT_TRUE(PackedWeights::keeps_winograd(torch::empty({640, 1280, 3, 3})));
}

TEST_F(Winograd, SmallMapsInBfloat16AreTransformedByPanelsAlone) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = channels_last({2, 64, 16, 16}, torch::kBFloat16),
                      weight = torch::randn({80, 64, 3, 3}).to(torch::kBFloat16),
                      bias = torch::randn({80}).to(torch::kBFloat16);
  CpuImplementation implementation;
  {
    const CpuImplementationScope scope(implementation);
    EXPECT_TRUE(can_convolve_by_winograd(x, weight, kPadded));
    EXPECT_FALSE(can_convolve_by_winograd(channels_last({2, 64, 8, 8}, torch::kBFloat16), weight, kPadded));
    EXPECT_FALSE(can_convolve_by_winograd(channels_last({3, 64, 32, 32}, torch::kBFloat16), weight, kPadded));
    const torch::Tensor y = winograd_conv2d(x, weight, bias), expected = in_double(x, weight, bias);
    EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
    const double rounding = test::relative_error(expected.to(torch::kBFloat16), expected);
    EXPECT_LE(test::relative_error(y, expected), 1.01 * rounding);
    EXPECT_GT(test::relative_error(winograd_conv2d(x, (weight * 1.004).to(torch::kBFloat16), bias), expected),
              1.01 * rounding);
    PackedWeights packed;
    const PackedWeightsScope kept(&packed);
    EXPECT_TRUE(conv2d(x, weight, bias, kPadded).equal(y)) << "a packed weight gains less";
  }
  implementation.winograd_panels = false;
  const CpuImplementationScope scope(implementation);
  EXPECT_FALSE(can_convolve_by_winograd(x, weight, kPadded));
}

TEST_F(Winograd, IsTheChoiceOfTheProcessorsKind) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = channels_last({1, 64, 32, 32}), weight = torch::randn({64, 64, 3, 3}),
                      bias = torch::randn({64});
  CpuImplementation implementation = default_cpu_implementation();
  {
    const CpuImplementationScope scope(implementation);
    EXPECT_TRUE(conv2d(x, weight, bias, kPadded).equal(winograd_conv2d(x, weight, bias)));
  }
  implementation.winograd_convolutions = false;
  const CpuImplementationScope scope(implementation);
  EXPECT_TRUE(conv2d(x, weight, bias, kPadded).equal(torch::conv2d(x, weight, bias, 1, 1)));
  EXPECT_FALSE(conv2d(x, weight, bias, kPadded).equal(winograd_conv2d(x, weight, bias)));
}

TEST_F(Winograd, KeepsTransformedWeightsWithinAScope) {
  const CpuImplementationScope ours(default_cpu_implementation());
  const torch::Tensor x = channels_last({1, 64, 32, 32}), bias = torch::randn({64});
  torch::Tensor weight = torch::randn({64, 64, 3, 3});
  PackedWeights packed;
  {
    const torch::NoGradGuard no_grad;
    const PackedWeightsScope scope(&packed);
    const torch::Tensor first = conv2d(x, weight, bias, kPadded);
    weight.mul_(2);  // what its owner promised not to do
    EXPECT_TRUE(conv2d(x, weight, bias, kPadded).equal(first));
  }
  const PackedWeightsScope scope(&packed);
  weight.set_requires_grad(true);
  const torch::Tensor gradient = torch::autograd::grad({conv2d(x, weight, bias, kPadded).sum()}, {weight})[0];
  EXPECT_GT(gradient.abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace sdtune::model
