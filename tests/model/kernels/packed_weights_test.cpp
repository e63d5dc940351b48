#include "model/kernels/packed_weights.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <thread>
#include <tuple>
#include <vector>

#include "model/core/tensor_memory.h"
#include "model/kernels/float32_compute.h"

namespace sdtune::model {
namespace {

torch::Tensor map_of(torch::IntArrayRef sizes, torch::Dtype dtype) {
  return torch::randn(sizes).to(dtype).contiguous(torch::MemoryFormat::ChannelsLast);
}

// channels in, channels out, side, kernel, stride, padding
using PackedCase = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>;
class PackedCases : public testing::TestWithParam<PackedCase> {};

TEST_P(PackedCases, AreLibTorchsBits) {
  const auto [in, out, side, kernel, stride, padding] = GetParam();
  torch::manual_seed(0);
  const torch::NoGradGuard no_grad;
  for (const torch::Dtype dtype : {torch::kFloat32, torch::kBFloat16}) {
    const torch::Tensor x = map_of({2, in, side, side}, dtype), bias = torch::randn({out}).to(dtype);
    const torch::Tensor weight = torch::randn({out, in, kernel, kernel}).to(dtype);
    if (computes_in_float32(x)) continue;  // oneDNN has no bfloat16 here
    const ConvShape shape = {.stride = stride, .padding = padding};
    PackedWeights packed;
    for (int call = 0; call < 2; ++call) {
      const torch::Tensor y = packed_conv2d(x, weight, bias, shape, packed);
      EXPECT_TRUE(y.equal(torch::conv2d(x, weight, bias, stride, padding))) << dtype;
      EXPECT_TRUE(y.is_contiguous(torch::MemoryFormat::ChannelsLast));
      EXPECT_FALSE(y.equal(torch::conv2d(x.flip(3), weight, bias, stride, padding))) << "a mirrored map must show";
    }
    const torch::Tensor larger = map_of({2, in, side + 4, side + 2}, dtype);  // packed for another size as well
    EXPECT_TRUE(
        packed_conv2d(larger, weight, {}, shape, packed).equal(torch::conv2d(larger, weight, {}, stride, padding)))
        << dtype;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PackedCases,
                         testing::Values(PackedCase{32, 48, 8, 3, 1, 1}, PackedCase{5, 7, 6, 3, 1, 1},
                                         PackedCase{16, 32, 9, 3, 2, 1}, PackedCase{16, 8, 9, 3, 2, 0},
                                         PackedCase{64, 64, 8, 1, 1, 0}));

class PackedScope : public testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(0); }
  torch::Tensor convolved() const { return conv2d(x_, weight_, bias_, {.stride = 1, .padding = 1}); }

  // Of a single small image LibTorch may take another library than oneDNN.
  const torch::Tensor x_ = map_of({2, 16, 8, 8}, torch::kFloat32);
  torch::Tensor weight_ = torch::randn({16, 16, 3, 3});
  const torch::Tensor bias_ = torch::randn({16});
  PackedWeights packed_;
};

// What it promises not to see, a weight that changes, tells that the packed one is used, and for how long.
TEST_F(PackedScope, HoldsForItsThreadUntilItEnds) {
  const torch::NoGradGuard no_grad;
  torch::Tensor first, other_thread;
  {
    const PackedWeightsScope scope(&packed_);
    first = convolved();
    weight_.mul_(2);
    EXPECT_TRUE(convolved().equal(first));
    std::thread([&] {
      const torch::NoGradGuard no_grad_either;
      other_thread = convolved();
    }).join();
    PackedWeights inner;
    {
      const PackedWeightsScope nested(&inner);
      EXPECT_FALSE(convolved().equal(first));
    }
    EXPECT_TRUE(convolved().equal(first));
  }
  EXPECT_FALSE(convolved().equal(first));
  EXPECT_FALSE(other_thread.equal(first));
}

TEST_F(PackedScope, IsNotForGradientsOtherFormatsAndOtherOrders) {
  const PackedWeightsScope scope(&packed_);
  weight_.set_requires_grad(true);
  const torch::Tensor gradient = torch::autograd::grad({convolved().sum()}, {weight_})[0];
  EXPECT_GT(gradient.abs().max().item<double>(), 0);
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(can_convolve_packed(x_, weight_, bias_));
  EXPECT_FALSE(can_convolve_packed(x_.contiguous(), weight_, bias_));
  EXPECT_FALSE(can_convolve_packed(x_.to(torch::kFloat64), weight_.to(torch::kFloat64), bias_));
  EXPECT_FALSE(can_convolve_packed(x_, weight_.to(torch::kBFloat16), bias_));
}

// A copy of a weight that lives for one call would be kept, with its address, call by call.
TEST_F(PackedScope, KeepsNoCopiesThatAreMadeForACall) {
  const torch::NoGradGuard no_grad;
  const PackedWeightsScope scope(&packed_);
  convolved();
  convolved();
  EXPECT_EQ(packed_.count(), 1);
  const torch::Tensor weight = torch::randn({64, 64, 3, 3}).to(torch::kBFloat16);
  for (int64_t side : {8, 32}) {  // by packed weights, by Winograd's products
    float32_conv2d(map_of({1, 64, side, side}, torch::kBFloat16), weight, torch::Tensor(), {.stride = 1, .padding = 1});
  }
  EXPECT_EQ(packed_.count(), 1);
}

// OpenMP's threads have no scope of tensor memory, and what they make in malloc's heap the process keeps.
TEST_F(PackedScope, KeepsWhatAThreadWithoutTensorMemoryMadeInItsOwnPages) {
  const TensorMemoryScope of_caller;
  if (!TensorMemoryScope::is_active()) GTEST_SKIP() << "under the address sanitizer nothing is kept";
  const torch::Tensor weight = torch::randn({96, 64, 3, 3});
  const torch::Tensor x = map_of({2, 64, 8, 8}, torch::kFloat32);
  const std::size_t before = tensor_memory().used;
  std::thread([&] {
    packed_.of_convolution(weight, x, {.stride = 1, .padding = 1});
    const std::size_t with_blocks = tensor_memory().used;
    EXPECT_GE(with_blocks, before + weight.nbytes());
    packed_.of_winograd(weight);
    EXPECT_GE(tensor_memory().used, with_blocks + weight.nbytes());
  }).join();
  EXPECT_EQ(packed_.count(), 2U);
}

TEST_F(PackedScope, IsSharedByThreads) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor expected = torch::conv2d(x_, weight_, bias_, 1, 1);
  std::vector<torch::Tensor> found(4);
  std::vector<std::thread> threads;
  for (torch::Tensor& result : found) {
    threads.emplace_back([&] {
      const torch::NoGradGuard no_grad_either;
      const PackedWeightsScope scope(&packed_);
      result = convolved();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const torch::Tensor& result : found) EXPECT_TRUE(result.equal(expected));
}

}  // namespace
}  // namespace sdtune::model
