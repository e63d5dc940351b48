#include "model/kernels/conv2d.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <array>
#include <tuple>
#include <utility>

#include "model/core/cpu_implementation.h"
#include "model/kernels/float32_compute.h"
#include "model/kernels/pair_gradient.h"
#include "model/kernels/winograd_conv2d.h"
#include "model/products/cpu_vectors.h"
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

class Bfloat16Cases : public testing::TestWithParam<ConvCase> {};

struct Passes {
  torch::Tensor y;
  torch::autograd::variable_list gradients;  // of x, weight and bias
};

Passes all_passes(const ConvCase& sizes, torch::Dtype dtype, bool by_patches, bool by_winograd) {
  const auto [batch, in, out, height, width, kernel, stride, padding] = sizes;
  torch::manual_seed(0);
  const auto leaf = [dtype](const torch::Tensor& t) {
    return t.to(torch::kBFloat16).to(dtype).detach().set_requires_grad(true);
  };
  const torch::Tensor x = leaf(torch::randn({batch, in, height, width}).contiguous(torch::MemoryFormat::ChannelsLast));
  const torch::Tensor weight = leaf(torch::randn({out, in, kernel, kernel})), bias = leaf(torch::randn({out}));
  CpuImplementation implementation = default_cpu_implementation();
  implementation.bfloat16_patches = by_patches;
  implementation.bfloat16_winograd = by_winograd;
  const CpuImplementationScope scope(implementation);
  const torch::Tensor y = dtype == torch::kFloat64 ? torch::conv2d(x, weight, bias, stride, padding)
                                                   : conv2d(x, weight, bias, {.stride = stride, .padding = padding});
  const torch::Tensor dy = torch::randn(y.sizes()).to(torch::kBFloat16).to(dtype);
  return {y, torch::autograd::grad({y}, {x, weight, bias}, {dy})};
}

// Both round each result once; an error of a hundredth shows.
TEST_P(Bfloat16Cases, AreAsCloseAsTheLibrarys) {
  const Passes ours = all_passes(GetParam(), torch::kBFloat16, true, true),
               library = all_passes(GetParam(), torch::kBFloat16, false, false),
               truth = all_passes(GetParam(), torch::kFloat64, false, false);
  EXPECT_EQ(ours.y.suggest_memory_format(), torch::MemoryFormat::ChannelsLast);
  const auto expect_as_close = [](const torch::Tensor& mine, const torch::Tensor& theirs, const torch::Tensor& exact) {
    const double most = 1.1 * test::relative_error(theirs, exact);
    EXPECT_LE(test::relative_error(mine, exact), most);
    EXPECT_GT(test::relative_error(mine * 1.01, exact), most);
  };
  expect_as_close(ours.y, library.y, truth.y);
  for (size_t i = 0; i < 3; ++i) expect_as_close(ours.gradients[i], library.gradients[i], truth.gradients[i]);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Bfloat16Cases,
                         testing::Values(ConvCase{2, 8, 128, 6, 4, 3, 1, 1},     // products of patches
                                         ConvCase{1, 8, 64, 9, 7, 3, 2, 1},      // stride 2, odd size
                                         ConvCase{1, 64, 64, 6, 6, 1, 1, 0},     // pointwise
                                         ConvCase{2, 40, 600, 9, 7, 3, 1, 1},    // parts of blocks
                                         ConvCase{1, 36, 64, 6, 6, 5, 1, 2},     // kernel 5
                                         ConvCase{1, 32, 64, 10, 10, 3, 1, 1},   // the gradient of the weight alone
                                         ConvCase{2, 64, 144, 16, 12, 3, 1, 1},  // Winograd, but for the weight
                                         ConvCase{2, 64, 80, 64, 36, 3, 1, 1},   // the same with whole kernels
                                         ConvCase{2, 8, 16, 32, 32, 3, 1, 1}));  // LibTorch's own way

// Kernels that are not trained, as beside a LoRA, and those that are: with the same bits.
TEST(Conv2d, InBfloat16WinogradIsTakenForTrainingToo) {
  if (!vectors_of_this_cpu()) GTEST_SKIP() << "a CPU without AVX2 never takes it";
  const bool has_direct_gradient = !computes_in_float32(torch::zeros({1}, torch::kBFloat16));
  CpuImplementation implementation = default_cpu_implementation();
  implementation.bfloat16_winograd = true;  // also with AMX
  const CpuImplementationScope scope(implementation);
  torch::manual_seed(0);
  const auto of_maps = [](at::IntArrayRef sizes) {
    return torch::randn(sizes).to(torch::kBFloat16).contiguous(torch::MemoryFormat::ChannelsLast);
  };
  const torch::Tensor x = of_maps({1, 64, 64, 64}).set_requires_grad(true), dy = of_maps({1, 80, 64, 64});
  const torch::Tensor weight = torch::randn({80, 64, 3, 3}).to(torch::kBFloat16);
  const torch::Tensor trained = weight.clone().set_requires_grad(true), none;
  const auto steps = [&](const torch::Tensor& kernels, const auto& convolve) {
    const torch::Tensor y = convolve(x, kernels);
    return std::pair(y.detach(), torch::autograd::grad({y}, {x}, {dy})[0]);
  };
  const auto ours = [&](const torch::Tensor& a, const torch::Tensor& b) { return conv2d(a, b, none, {1, 1}); };
  const auto expected = steps(weight, [&](const auto& a, const auto& b) { return winograd_conv2d(a, b, none); });
  for (const bool is_trained : {false, true}) {
    const auto [y, dx] = steps(is_trained ? trained : weight, ours);
    EXPECT_TRUE(y.equal(expected.first)) << is_trained;
    // Without instructions for bfloat16 a trained weight goes by float32_conv2d: the same products, another gradient.
    if (!is_trained || has_direct_gradient) {
      EXPECT_TRUE(dx.equal(expected.second)) << is_trained;
    }
  }
}

TEST(Conv2d, InBfloat16FewPixelsGoByPatches) {
  if (computes_in_float32(torch::zeros({1}, torch::kBFloat16))) GTEST_SKIP() << "bfloat16 is computed in float32 here";
  const auto equal = [](const ConvCase& sizes) {
    const Passes ours = all_passes(sizes, torch::kBFloat16, true, false),
                 theirs = all_passes(sizes, torch::kBFloat16, false, false);
    return std::array<bool, 3>{ours.y.equal(theirs.y), ours.gradients[0].equal(theirs.gradients[0]),
                               ours.gradients[1].equal(theirs.gradients[1])};
  };
  const bool has_pairs = can_multiply_bfloat16_pairs();
  EXPECT_EQ(equal({2, 640, 128, 8, 8, 3, 1, 1}), (std::array<bool, 3>{false, !has_pairs, false}));  // 128 rows
  EXPECT_EQ(equal({3, 640, 128, 8, 8, 3, 1, 1}), (std::array<bool, 3>{true, true, false}));         // 192
  EXPECT_EQ(equal({5, 640, 128, 8, 8, 3, 1, 1}), (std::array<bool, 3>{true, true, true}));          // 320
}

TEST(Conv2d, InBfloat16BitsDoNotDependOnThreads) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Passes alone = all_passes({2, 100, 300, 9, 7, 3, 1, 1}, torch::kBFloat16, true, true);
  at::set_num_threads(2);
  const Passes together = all_passes({2, 100, 300, 9, 7, 3, 1, 1}, torch::kBFloat16, true, true);
  at::set_num_threads(threads);
  EXPECT_TRUE(alone.y.equal(together.y));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(alone.gradients[i].equal(together.gradients[i])) << i;
}

TEST(Conv2d, GradientsByPairsDoNotDependOnTheBatch) {
  const torch::Tensor weight = torch::randn({64, 40, 3, 3}).to(torch::kBFloat16);
  if (!can_multiply_gradient_by_pairs(weight)) GTEST_SKIP() << "a CPU without such instructions never takes them";
  const torch::Tensor dy = torch::randn({3 * 35, 64}).to(torch::kBFloat16);
  const auto gradient = [&](int64_t first, int64_t count) {
    const torch::Tensor like = torch::empty({count, 40, 5, 7}, torch::kBFloat16);
    return input_gradient_by_pairs(dy.slice(0, first * 35, (first + count) * 35), weight, like, {});
  };
  EXPECT_TRUE(gradient(0, 3).slice(0, 1, 2).equal(gradient(1, 1)));
  EXPECT_FALSE(gradient(0, 3).slice(0, 1, 2).equal(gradient(2, 1)));
}

// LibTorch takes a lone image that was made of a sequence for a contiguous map.
TEST(Conv2d, ALoneImageKeepsItsMemoryOrderInBfloat16) {
  if (computes_in_float32(torch::zeros({1}, torch::kBFloat16))) GTEST_SKIP() << "bfloat16 is computed in float32 here";
  torch::manual_seed(0);
  const torch::Tensor sequence = torch::randn({1, 256, 16}).to(torch::kBFloat16);
  const torch::Tensor map = sequence.transpose(1, 2).unflatten(2, {16, 16});
  const torch::Tensor weight = torch::randn({16, 16, 1, 1}).to(torch::kBFloat16),
                      bias = torch::zeros({16}, torch::kBFloat16);
  ASSERT_EQ(torch::conv2d(map, weight, bias).suggest_memory_format(), torch::MemoryFormat::Contiguous);
  const torch::Tensor y = conv2d(map, weight, bias, {});
  EXPECT_EQ(y.suggest_memory_format(), torch::MemoryFormat::ChannelsLast);
  EXPECT_LE(test::relative_error(y, torch::conv2d(map, weight, bias)), 1e-2);
  EXPECT_GT(test::relative_error(y * 1.02, torch::conv2d(map, weight, bias)), 1e-2);
}

}  // namespace
}  // namespace sdtune::model
