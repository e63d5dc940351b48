#include "model/kernels/conv2d.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <tuple>

#include "tests/support/relative_error.h"

namespace sdtune::model {
namespace {

// batch, channels in, channels out, height, width, kernel, stride, padding
using ConvCase = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>;
class ConvCases : public testing::TestWithParam<ConvCase> {};

TEST_P(ConvCases, AgreesWithDoublePrecisionForwardAndBackward) {
  const auto [batch, in, out, height, width, kernel, stride, padding] = GetParam();
  torch::manual_seed(0);
  const auto leaf = [](const torch::Tensor& t) { return t.detach().set_requires_grad(true); };
  const torch::Tensor x = leaf(torch::randn({batch, in, height, width}).contiguous(torch::MemoryFormat::ChannelsLast));
  const torch::Tensor weight = leaf(torch::randn({out, in, kernel, kernel}));
  const torch::Tensor bias = leaf(torch::randn({out}));
  const torch::Tensor y = conv2d(x, weight, bias, {.stride = stride, .padding = padding});
  const torch::Tensor expected =
      torch::conv2d(x.to(torch::kFloat64), weight.to(torch::kFloat64), bias.to(torch::kFloat64), stride, padding);
  EXPECT_LE(test::relative_error(y, expected), 1e-6);
  EXPECT_GT(test::relative_error(conv2d(x.flip(3), weight, bias, {.stride = stride, .padding = padding}), expected),
            1e-2)
      << "a mirrored image must show";
  EXPECT_TRUE(y.is_contiguous(torch::MemoryFormat::ChannelsLast));
  const torch::Tensor dy = torch::randn(y.sizes());
  const auto ours = torch::autograd::grad({y}, {x, weight, bias}, {dy});
  const auto theirs = torch::autograd::grad({expected}, {x, weight, bias}, {dy.to(torch::kFloat64)});
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_LE(test::relative_error(ours[i], theirs[i]), 2e-6) << "leaf " << i;
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvCases,
                         testing::Values(ConvCase{2, 5, 7, 6, 4, 3, 1, 1},      // products of patches
                                         ConvCase{1, 8, 16, 5, 7, 3, 2, 1},     // stride 2, odd size
                                         ConvCase{1, 8, 16, 9, 9, 3, 2, 0},     // stride 2 without padding
                                         ConvCase{2, 6, 4, 8, 8, 1, 1, 0},      // pointwise
                                         ConvCase{1, 4, 3, 6, 6, 5, 1, 2},      // kernel 5
                                         ConvCase{2, 4, 8, 32, 32, 3, 1, 1}));  // LibTorch's own way

TEST(Conv2d, ResultMayBeAddedToInPlace) {
  torch::manual_seed(0);
  const torch::Tensor x = torch::randn({1, 4, 4, 4}).contiguous(torch::MemoryFormat::ChannelsLast);
  const torch::Tensor weight = torch::randn({4, 4, 3, 3}).set_requires_grad(true);
  const torch::Tensor bias = torch::zeros({4});
  const torch::Tensor sum = conv2d(x, weight, bias, {.stride = 1, .padding = 1}).add_(x);
  const torch::Tensor apart = torch::conv2d(x, weight, bias, 1, 1) + x;
  EXPECT_TRUE(torch::allclose(sum, apart, 1e-4, 1e-5));
  const auto gradient = [&](const torch::Tensor& y) { return torch::autograd::grad({y.square().sum()}, {weight})[0]; };
  EXPECT_LE(test::relative_error(gradient(sum), gradient(apart)), 1e-5);
}

}  // namespace
}  // namespace sdtune::model
