#include "model/kernels/wide_attention.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "model/nn/attention.h"
#include "tests/support/relative_error.h"

namespace sdtune::model {
namespace {

torch::Tensor exact(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  const auto to = [](const torch::Tensor& y) { return y.to(torch::kFloat64).transpose(1, 2); };
  const torch::Tensor scores = to(q).matmul(to(k).transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3)));
  return torch::softmax(scores, 3).matmul(to(v)).transpose(1, 2);
}

// Blocks of queries that are whole and that are not, several images and heads. The mutant of the tolerance: a scale of
// one head's number more.
TEST(WideAttention, IsSoftmaxOfScaledProducts) {
  torch::manual_seed(0);
  for (const auto& [dtype, tolerance] : {std::pair{torch::kFloat32, 1e-6}, std::pair{torch::kBFloat16, 3e-3}}) {
    for (const int64_t queries : {5, 512, 700}) {
      const torch::Tensor q = torch::randn({2, queries, 2, 192}).to(dtype),
                          k = torch::randn({2, 300, 2, 192}).to(dtype);
      const torch::Tensor v = torch::randn({2, 300, 2, 192}).to(dtype);
      ASSERT_TRUE(can_attend_wide(q, k, v));
      const torch::Tensor y = attend_wide(q, k, v), expected = exact(q, k, v);
      EXPECT_EQ(y.scalar_type(), dtype);
      EXPECT_EQ(y.sizes(), q.sizes());
      EXPECT_LE(test::relative_error(y, expected), tolerance) << queries;
      const torch::Tensor scaled = exact(q.to(torch::kFloat64) * std::sqrt(192.0 / 194.0), k, v);
      EXPECT_GT(test::relative_error(scaled, expected), 1e-6);
    }
  }
}

TEST(WideAttention, IsNotAskedForGradients) {
  torch::Tensor q = torch::randn({1, 8, 1, 512});
  const torch::Tensor k = torch::randn({1, 8, 1, 512});
  EXPECT_TRUE(can_attend_wide(q, k, k));
  EXPECT_FALSE(can_attend_wide(q.narrow(3, 0, 160), k.narrow(3, 0, 160), k.narrow(3, 0, 160)));  // attention.h's
  q.set_requires_grad(true);
  EXPECT_FALSE(can_attend_wide(q, k, k));
  attend(q, k, k, /*causal=*/false, /*upcast=*/false).sum().backward();
  EXPECT_TRUE(q.grad().defined());
}

}  // namespace
}  // namespace sdtune::model
