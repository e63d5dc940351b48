#include "model/kernels/group_norm.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <tuple>

#include "tests/support/relative_error.h"

namespace sdtune::model {
namespace {

struct Inputs {
  torch::Tensor x, weight, bias, offset;
};

Inputs make_inputs(torch::IntArrayRef shape, torch::MemoryFormat format, torch::Dtype dtype = torch::kFloat32) {
  torch::manual_seed(0);
  const auto leaf = [dtype](const torch::Tensor& t) { return t.to(dtype).set_requires_grad(true); };
  return {leaf((torch::randn(shape) * 2 + 3).contiguous(format)), leaf(torch::randn({shape[1]})),
          leaf(torch::randn({shape[1]})), leaf(torch::randn({shape[0], shape[1]}))};
}

torch::Tensor reference(const Inputs& in, int64_t groups, double eps, bool silu, bool with_offset) {
  const auto wide = [](const torch::Tensor& t) { return t.to(torch::kFloat64); };
  const torch::Tensor x = with_offset ? wide(in.x) + wide(in.offset).unsqueeze(2).unsqueeze(3) : wide(in.x);
  const torch::Tensor y = torch::group_norm(x, groups, wide(in.weight), wide(in.bias), eps);
  return silu ? torch::silu(y) : y;
}

torch::Tensor fused(const Inputs& in, int64_t groups, double eps, bool silu, bool with_offset) {
  return group_norm(in.x, {.weight = in.weight,
                           .bias = in.bias,
                           .offset = with_offset ? in.offset : torch::Tensor(),
                           .groups = groups,
                           .eps = eps,
                           .silu = silu});
}

// shape, groups: widths that fill vectors, that do not, and planes with a rest.
using GroupNormCase = std::tuple<std::vector<int64_t>, int64_t>;
class GroupNormCases : public testing::TestWithParam<std::tuple<GroupNormCase, torch::MemoryFormat, bool, bool>> {};

TEST_P(GroupNormCases, AgreesWithDoublePrecisionForwardAndBackward) {
  const auto& [shape_and_groups, format, silu, with_offset] = GetParam();
  const auto& [shape, groups] = shape_and_groups;
  const Inputs in = make_inputs(shape, format);
  const torch::Tensor y = fused(in, groups, 1e-5, silu, with_offset);
  const torch::Tensor expected = reference(in, groups, 1e-5, silu, with_offset);
  EXPECT_LE(test::relative_error(y, expected), 2e-6);
  EXPECT_GT(test::relative_error(y, reference(in, groups, 1e-1, silu, with_offset)), 1e-4) << "a wrong eps must show";
  EXPECT_TRUE(y.is_contiguous(format)) << "the memory format is kept";

  std::vector<torch::Tensor> leaves = {in.x, in.weight, in.bias};
  if (with_offset) leaves.push_back(in.offset);
  const torch::Tensor dy = torch::randn(shape);
  const auto ours = torch::autograd::grad({y}, leaves, {dy});
  const auto theirs = torch::autograd::grad({expected}, leaves, {dy.to(torch::kFloat64)});
  for (size_t i = 0; i < leaves.size(); ++i) EXPECT_LE(test::relative_error(ours[i], theirs[i]), 5e-6) << "leaf " << i;
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, GroupNormCases,
    testing::Combine(testing::Values(GroupNormCase{{2, 64, 6, 5}, 32}, GroupNormCase{{1, 320, 8, 8}, 32},
                                     GroupNormCase{{3, 40, 3, 3}, 8}, GroupNormCase{{2, 6, 7, 7}, 3},
                                     GroupNormCase{{1, 8, 1, 1}, 2}),
                     testing::Values(torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast),
                     testing::Bool(), testing::Bool()));

TEST(GroupNorm, GradientAgreesWithDifferences) {
  const Inputs in = make_inputs({2, 4, 3, 3}, torch::MemoryFormat::ChannelsLast);
  const torch::Tensor along = torch::randn({2, 4, 3, 3});
  const auto value = [&](const torch::Tensor& x) {
    const Inputs moved = {x, in.weight, in.bias, in.offset};
    return (fused(moved, 2, 1e-5, true, true) * along).sum();
  };
  const torch::Tensor gradient = torch::autograd::grad({value(in.x)}, {in.x})[0];
  const torch::Tensor direction = torch::randn({2, 4, 3, 3});
  const torch::NoGradGuard no_grad;
  const double step = 1e-2;
  const double difference =
      (value(in.x + step * direction) - value(in.x - step * direction)).item<double>() / (2 * step);
  EXPECT_NEAR((gradient * direction).sum().item<double>(), difference, 1e-3 * std::abs(difference) + 1e-3);
}

TEST(GroupNorm, IsTheSameOnAnyNumberOfThreads) {
  const Inputs in = make_inputs({2, 320, 16, 16}, torch::MemoryFormat::ChannelsLast);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const torch::Tensor one = fused(in, 32, 1e-5, true, true);
  at::set_num_threads(3);
  const torch::Tensor three = fused(in, 32, 1e-5, true, true);
  at::set_num_threads(threads);
  EXPECT_TRUE(torch::equal(one, three));
}

TEST(GroupNorm, TakesBfloat16) {
  const Inputs in = make_inputs({2, 64, 8, 8}, torch::MemoryFormat::ChannelsLast, torch::kBFloat16);
  const torch::Tensor y = fused(in, 32, 1e-5, true, true);
  EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
  const torch::Tensor expected = reference(in, 32, 1e-5, true, true);
  EXPECT_LE(test::relative_error(y, expected), 3e-3);
  const torch::Tensor dy = torch::ones({2, 64, 8, 8}, torch::kBFloat16);
  const auto ours = torch::autograd::grad({y}, {in.x, in.offset}, {dy});
  const auto theirs = torch::autograd::grad({expected}, {in.x, in.offset}, {dy.to(torch::kFloat64)});
  EXPECT_LE(test::relative_error(ours[0], theirs[0].to(torch::kFloat64)), 1e-2);
}

TEST(GroupNorm, LetsNotANumberThrough) {
  Inputs in = make_inputs({1, 4, 4, 4}, torch::MemoryFormat::ChannelsLast);
  const torch::NoGradGuard no_grad;
  in.x[0][1][2][3] = std::nan("");
  EXPECT_TRUE(fused(in, 2, 1e-5, true, false).isnan().any().item<bool>());
}

// The kernels read them by the map's sizes: past the end of what is smaller.
TEST(GroupNorm, LeavesArgumentsOfOtherSizesToLibTorch) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(0);
  const torch::Tensor x = torch::randn({3, 8, 5, 4}), ones = torch::ones({8}), zeros = torch::zeros({8});
  const auto run = [&](const torch::Tensor& weight, const torch::Tensor& offset, int64_t groups) {
    return group_norm(x, {.weight = weight, .bias = zeros, .offset = offset, .groups = groups});
  };
  const torch::Tensor offset = torch::randn({1, 8});
  EXPECT_LE(test::relative_error(run(ones, offset, 2), run(ones, offset.expand({3, 8}), 2).to(torch::kFloat64)), 2e-6);
  EXPECT_THROW(run(torch::ones({4}), {}, 2), c10::Error);
  EXPECT_THROW(run(ones, {}, 3), c10::Error);
  EXPECT_THROW(group_norm_over(x.clone(), {.weight = torch::ones({4}), .bias = zeros, .groups = 2}), c10::Error);
}

TEST(GroupNorm, OverItsInputIsTheSameBitsAndOnlyWithoutGradients) {
  for (const torch::Dtype dtype : {torch::kFloat32, torch::kBFloat16}) {
    for (const auto format : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
      const torch::Tensor x = torch::randn({2, 48, 9, 7}).to(dtype).contiguous(format);
      const torch::Tensor weight = torch::randn({48}).to(dtype), bias = torch::randn({48}).to(dtype);
      const GroupNormArguments arguments = {
          .weight = weight, .bias = bias, .offset = torch::randn({2, 48}).to(dtype), .groups = 8, .silu = true};
      const torch::Tensor expected = group_norm(x, arguments), given = x.clone();
      EXPECT_TRUE(group_norm_over(given, arguments).equal(expected));
      EXPECT_TRUE(given.equal(expected));
      const torch::Tensor trained = x.clone().set_requires_grad(true);
      EXPECT_TRUE(group_norm_over(trained, arguments).equal(expected));
      EXPECT_TRUE(trained.equal(x));
    }
  }
}

}  // namespace
}  // namespace sdtune::model
