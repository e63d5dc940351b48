#include "model/kernels/float32_compute.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <vector>

#include "model/kernels/matrix_product.h"

namespace sdtune::model {
namespace {

torch::Tensor leaf(const torch::Tensor& x) {
  return x.to(torch::kBFloat16).detach().set_requires_grad(true);
}

torch::Tensor exact(const torch::Tensor& x) {
  return x.detach().to(torch::kFloat64).set_requires_grad(x.requires_grad());
}

// Rounded once, as the exact result would be, but for sums that end beside the middle of two numbers.
void expect_rounded_once(const torch::Tensor& ours, const torch::Tensor& expected) {
  ASSERT_EQ(ours.scalar_type(), torch::kBFloat16);
  const double differing = (ours != expected.to(torch::kBFloat16)).to(torch::kFloat64).mean().item<double>();
  EXPECT_LE(differing, 0.01);
  const torch::Tensor mutant = (expected * 1.004).to(torch::kBFloat16);  // another rounding: half a step of bfloat16
  EXPECT_GT((mutant != expected.to(torch::kBFloat16)).to(torch::kFloat64).mean().item<double>(), 0.2);
}

void expect_gradients_rounded_once(const torch::Tensor& y, const torch::Tensor& expected,
                                   const std::vector<torch::Tensor>& leaves, const std::vector<torch::Tensor>& exacts) {
  const torch::Tensor dy = torch::randn(y.sizes()).to(torch::kBFloat16);
  const auto ours = torch::autograd::grad({y}, leaves, {dy});
  const auto theirs = torch::autograd::grad({expected}, exacts, {dy.to(torch::kFloat64)});
  for (std::size_t i = 0; i < ours.size(); ++i) expect_rounded_once(ours[i], theirs[i]);
}

TEST(Float32Compute, LinearRoundsOnceForwardAndBackward) {
  torch::manual_seed(0);
  for (const bool with_bias : {true, false}) {
    std::vector<torch::Tensor> leaves = {leaf(torch::randn({2, 9, 96})), leaf(torch::randn({80, 96}))};
    if (with_bias) leaves.push_back(leaf(torch::randn({80})));
    std::vector<torch::Tensor> exacts;
    for (const torch::Tensor& x : leaves) exacts.push_back(exact(x));
    const torch::Tensor y = float32_linear(leaves[0], leaves[1], with_bias ? leaves[2] : torch::Tensor());
    const torch::Tensor expected = torch::linear(exacts[0], exacts[1], with_bias ? exacts[2] : torch::Tensor());
    expect_rounded_once(y, expected);
    expect_gradients_rounded_once(y, expected, leaves, exacts);
  }
}

TEST(Float32Compute, ConvolutionRoundsOnceForwardAndBackward) {
  torch::manual_seed(0);
  for (const ConvShape& shape : {ConvShape{.stride = 1, .padding = 1}, ConvShape{.stride = 2, .padding = 1}}) {
    for (const bool with_bias : {true, false}) {
      const torch::Tensor map = torch::randn({2, 12, 10, 8}).contiguous(torch::MemoryFormat::ChannelsLast);
      std::vector<torch::Tensor> leaves = {leaf(map), leaf(torch::randn({20, 12, 3, 3}))};
      if (with_bias) leaves.push_back(leaf(torch::randn({20})));
      std::vector<torch::Tensor> exacts;
      for (const torch::Tensor& x : leaves) exacts.push_back(exact(x));
      const torch::Tensor y = float32_conv2d(leaves[0], leaves[1], with_bias ? leaves[2] : torch::Tensor(), shape);
      const torch::Tensor expected =
          torch::conv2d(exacts[0], exacts[1], with_bias ? exacts[2] : torch::Tensor(), shape.stride, shape.padding);
      EXPECT_TRUE(y.is_contiguous(torch::MemoryFormat::ChannelsLast));
      expect_rounded_once(y, expected);
      expect_gradients_rounded_once(y, expected, leaves, exacts);
    }
  }
}

TEST(Float32Compute, IsForBfloat16OnProcessorsWithoutItAlone) {
  const torch::Tensor x = torch::ones({2, 2});
  EXPECT_FALSE(computes_in_float32(x));
  EXPECT_FALSE(computes_in_float32(x.to(torch::kFloat64)));
  EXPECT_EQ(computes_in_float32(x.to(torch::kBFloat16)), !can_multiply_by_onednn());
}

}  // namespace
}  // namespace sdtune::model
