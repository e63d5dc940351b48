#include "model/kernels/winograd_panels.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <tuple>

#include "model/core/cpu_implementation.h"
#include "model/kernels/winograd_blocks.h"
#include "model/kernels/winograd_tiles.h"
#include "model/products/cpu_vectors.h"
#include "model/products/small_product.h"

namespace sdtune::model::winograd {
namespace {

// Channels that go in and come out, and tiles.
class WinogradPanels : public testing::TestWithParam<std::tuple<int64_t, int64_t, int64_t>> {
 protected:
  void SetUp() override {
    if (!vectors_of_this_cpu()) GTEST_SKIP() << "a CPU without AVX2 never takes them";
    torch::manual_seed(0);
    std::tie(in_, out_, tiles_) = GetParam();
    weight_ = torch::randn({out_, in_, 3, 3});
    x_ = torch::randn({kPositions, tiles_, in_});
    dy_ = torch::randn({kPositions, tiles_, out_});
  }

  // By way of all transformed kernels: [36, out, in].
  torch::Tensor kernels(bool flipped) const { return transformed_weight(weight_, {0, out_}, {0, in_}, flipped); }

  static torch::Tensor products(const torch::Tensor& a, const torch::Tensor& b) {
    torch::Tensor sums = torch::empty({kPositions, a.size(1), b.size(2)});
    small_products(a, b, sums, /*adds=*/false, Vectors::kAvx2);
    return sums;
  }

  torch::Tensor by_panels(const torch::Tensor& maps, bool flipped, Vectors vectors = Vectors::kAvx2) const {
    torch::Tensor sums = torch::full({kPositions, tiles_, flipped ? in_ : out_}, 7.0);
    multiply_by_kernels(maps, weight_, flipped, sums, vectors);
    return sums;
  }

  torch::Tensor kernel_gradient(Vectors vectors) const {
    torch::Tensor gradient = torch::full({out_, in_, 3, 3}, 7.0);
    write_kernel_gradient(dy_, x_, gradient, vectors);
    return gradient;
  }

  int64_t in_, out_, tiles_;
  torch::Tensor weight_, x_, dy_;
};

TEST_P(WinogradPanels, HaveTheBitsOfProductsWithAllTransformedKernels) {
  EXPECT_TRUE(by_panels(x_, false).equal(products(x_, kernels(false).transpose(1, 2))));
  EXPECT_TRUE(by_panels(dy_, true).equal(products(dy_, kernels(true))));
  EXPECT_FALSE(by_panels(dy_, true).equal(products(dy_, kernels(false)))) << "kernels that were not turned";
}

TEST_P(WinogradPanels, OfBfloat16AreThoseOfTheSameNumbersInFloat32) {
  const torch::Tensor rounded = weight_.to(torch::kBFloat16), unrounded_sums = by_panels(x_, false);
  for (const Vectors vectors : {Vectors::kAvx2, *vectors_of_this_cpu(), Vectors::kAvx512ByAvx2}) {
    for (const bool flipped : {false, true}) {
      torch::Tensor found = torch::full({kPositions, tiles_, flipped ? in_ : out_}, 7.0), expected = found.clone();
      multiply_by_kernels(flipped ? dy_ : x_, rounded, flipped, found, vectors);
      multiply_by_kernels(flipped ? dy_ : x_, rounded.to(torch::kFloat32), flipped, expected, vectors);
      EXPECT_TRUE(found.equal(expected));
      EXPECT_FALSE(!flipped && found.equal(unrounded_sums));
    }
  }
}

TEST_P(WinogradPanels, GradientOfKernelsHasTheBitsOfWholeProducts) {
  const torch::Tensor found = kernel_gradient(Vectors::kAvx2), expected = torch::empty({out_, in_, 3, 3});
  write_weight_gradient(products(dy_.transpose(1, 2), x_), 0, expected);
  EXPECT_TRUE(found.equal(expected));
  EXPECT_FALSE(found.equal(expected.flip(2)));
}

TEST_P(WinogradPanels, BitsDoNotDependOnVectors) {
  for (const Vectors vectors : {*vectors_of_this_cpu(), Vectors::kAvx512ByAvx2}) {
    EXPECT_TRUE(by_panels(x_, false, vectors).equal(by_panels(x_, false)));
    EXPECT_TRUE(by_panels(dy_, true, vectors).equal(by_panels(dy_, true)));
    EXPECT_TRUE(kernel_gradient(vectors).equal(kernel_gradient(Vectors::kAvx2)));
  }
}

TEST_P(WinogradPanels, BitsDoNotDependOnThreads) {
  const int threads = at::get_num_threads();
  torch::Tensor gradients[2];
  torch::Tensor sums[2];
  for (int i = 0; i < 2; ++i) {
    at::set_num_threads(1 + 2 * i);
    sums[i] = by_panels(x_, false);
    gradients[i] = kernel_gradient(Vectors::kAvx2);
  }
  at::set_num_threads(threads);
  EXPECT_TRUE(sums[0].equal(sums[1]));
  EXPECT_TRUE(gradients[0].equal(gradients[1]));
}

INSTANTIATE_TEST_SUITE_P(Sizes, WinogradPanels,
                         testing::Values(std::tuple(64, 64, 16), std::tuple(16, 16, 1), std::tuple(80, 48, 6),
                                         std::tuple(144, 208, 33), std::tuple(128, 96, 64)));

// With a thousand tiles transformed kernels are read often: panels would make them anew for nothing.
TEST(WinogradPanelsChoice, IsOfFewTilesWithVectors) {
  const bool has_vectors = vectors_of_this_cpu().has_value();
  CpuImplementation implementation;
  {
    const CpuImplementationScope scope(implementation);
    EXPECT_EQ(takes_panels(64), has_vectors);
    EXPECT_EQ(takes_panels_for_gradient(32), has_vectors);
    EXPECT_FALSE(takes_panels(65));
    EXPECT_EQ(takes_panels(128, torch::kBFloat16), has_vectors);
    EXPECT_FALSE(takes_panels(129, torch::kBFloat16));
    EXPECT_FALSE(takes_panels_for_gradient(33));
  }
  implementation.winograd_panels = false;
  const CpuImplementationScope scope(implementation);
  EXPECT_FALSE(takes_panels(16)) << "the kind's choice is whole kernels";
  EXPECT_FALSE(takes_panels_for_gradient(16));
}

}  // namespace
}  // namespace sdtune::model::winograd
