#include "model/kernels/geglu.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <vector>

#include "tests/support/relative_error.h"

namespace sdtune::model {
namespace {

torch::Tensor reference(const torch::Tensor& x) {
  const auto halves = x.to(torch::kFloat64).chunk(2, -1);
  return halves[0] * torch::gelu(halves[1]);
}

TEST(Geglu, AgreesWithDoublePrecisionForwardAndBackward) {
  torch::manual_seed(0);
  for (const int64_t width : {1, 7, 16, 130}) {
    const torch::Tensor x = (torch::randn({3, 5, 2 * width}) * 3).set_requires_grad(true);
    const torch::Tensor y = geglu(x), expected = reference(x);
    EXPECT_EQ(y.sizes(), expected.sizes());
    EXPECT_LE(test::relative_error(y, expected), 1e-6);
    const torch::Tensor dy = torch::randn(y.sizes());
    const torch::Tensor dx = torch::autograd::grad({y}, {x}, {dy})[0];
    const torch::Tensor theirs = torch::autograd::grad({expected}, {x}, {dy.to(torch::kFloat64)})[0];
    EXPECT_LE(test::relative_error(dx, theirs.to(torch::kFloat64)), 1e-6);
  }
}

TEST(Geglu, IsTheExactGeluAndNotTheTanhForm) {
  const torch::Tensor x = torch::cat({torch::ones({4001}), torch::linspace(-10, 10, 4001)}).unsqueeze(0);
  const torch::Tensor gate = x.slice(1, 4001).to(torch::kFloat64);
  EXPECT_LE((geglu(x) - torch::gelu(gate)).abs().max().item<double>(), 2e-6);
  EXPECT_GT((geglu(x) - torch::gelu(gate, "tanh")).abs().max().item<double>(), 1e-4);
}

TEST(Geglu, TakesBfloat16AndLetsNotANumberThrough) {
  torch::manual_seed(0);
  const torch::Tensor x = torch::randn({4, 64}).to(torch::kBFloat16);
  EXPECT_EQ(geglu(x).scalar_type(), torch::kBFloat16);
  EXPECT_LE(test::relative_error(geglu(x), reference(x)), 4e-3);
  x[1][40] = std::nan("");
  EXPECT_EQ(geglu(x).isnan().sum().item<int64_t>(), 1);
}

TEST(Geglu, TakesNothing) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{0, 8}, std::vector<int64_t>{3, 0}}) {
    const torch::Tensor x = torch::zeros(shape, torch::requires_grad());
    const torch::Tensor y = geglu(x);
    EXPECT_EQ(y.sizes(), reference(x).sizes());
    EXPECT_EQ(torch::autograd::grad({y}, {x}, {torch::zeros_like(y)})[0].sizes(), x.sizes());
  }
}

}  // namespace
}  // namespace sdtune::model
