#include "model/products/small_product.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <vector>

#include "model/core/cpu_implementation.h"
#include "tests/support/relative_error.h"

namespace sdtune::model {
namespace {

// What AVX-512 computes runs on every CPU, if slowly.
constexpr Vectors kEachVectors[] = {Vectors::kAvx2, Vectors::kAvx512ByAvx2};

// Whole groups of rows, vectors, panels and blocks, and parts of them; lengths below and above what is multiplied at
// once; by columns, the last one's left matrix is copied.
const std::vector<ProductSizes> kProductSizes = {
    {1, 1, 1},   {3, 7, 5},     {12, 256, 32}, {13, 257, 33}, {64, 208, 208},  {77, 128, 17}, {4, 320, 320},
    {30, 9, 65}, {208, 64, 96}, {5, 600, 47},  {1, 64, 512},  {256, 144, 144}, {963, 131, 7}, {483, 203, 261}};

TEST(SmallProduct, AgreesWithDoublePrecisionHoweverItsMatricesLie) {
  torch::manual_seed(0);
  for (const auto& [m, k, n] : kProductSizes) {
    const torch::Tensor a = torch::randn({m, k}), b = torch::randn({k, n}), bias = torch::randn({n});
    const torch::Tensor expected = torch::addmm(bias.to(torch::kFloat64), a.to(torch::kFloat64), b.to(torch::kFloat64));
    const torch::Tensor a_by_columns = a.t().contiguous().t(), b_by_columns = b.t().contiguous().t();
    const torch::Tensor a_slice = torch::cat({a, a}, 1).slice(1, 0, k), b_slice = torch::cat({b, b}, 1).slice(1, 0, n);
    const torch::Tensor scattered = torch::stack({b, b}, 2).select(2, 0);
    for (const Vectors vectors : kEachVectors) {
      for (const torch::Tensor& left : {a, a_by_columns, a_slice}) {
        for (const torch::Tensor& right : {b, b_by_columns, b_slice, scattered}) {
          EXPECT_LE(test::relative_error(small_product(left, right, bias, vectors), expected), 1e-6)
              << m << " " << k << " " << n;
          EXPECT_LE(test::relative_error(small_product(left, right, {}, vectors) + bias, expected), 1e-6);
        }
      }
      EXPECT_GT(test::relative_error(small_product(a, b, {}, vectors), expected), 1e-3) << "a bias left out must show";
      EXPECT_GT(test::relative_error(small_product(a * 1.0001, b, bias, vectors), expected), 1e-6);
    }
  }
}

// Products of pairs are exact in float32, and their sums are rounded once more at the end.
TEST(SmallProduct, OfBfloat16RoundsOnceAtTheEnd) {
  if (!can_multiply_bfloat16_pairs()) GTEST_SKIP() << "a CPU without such instructions never takes it";
  torch::manual_seed(0);
  for (const auto& [m, k, n] : kProductSizes) {
    const auto make = [](at::IntArrayRef sizes) { return torch::randn(sizes).to(torch::kBFloat16); };
    const torch::Tensor a = make({m, k}), b = make({k, n}), bias = make({n});
    const torch::Tensor expected = torch::addmm(bias.to(torch::kFloat64), a.to(torch::kFloat64), b.to(torch::kFloat64));
    const torch::Tensor a_by_columns = a.t().contiguous().t(), b_by_columns = b.t().contiguous().t();
    const torch::Tensor a_slice = torch::cat({a, a, a}, 1).slice(1, 1, k + 1);  // not aligned to pairs
    const torch::Tensor b_slice = torch::cat({b, b}, 1).slice(1, 0, n),
                        scattered = torch::stack({b, b}, 2).select(2, 0);
    for (const torch::Tensor& left : {a, a_by_columns}) {
      for (const torch::Tensor& right : {b, b_by_columns, b_slice, scattered}) {
        EXPECT_LE(test::relative_error(small_product(left, right, bias), expected), 2e-3) << m << " " << k << " " << n;
      }
    }
    EXPECT_TRUE(torch::equal(small_product(a_slice, b), small_product(a_slice.contiguous(), b)));
    EXPECT_GT(test::relative_error(small_product(a, b), expected), 1e-2) << "a bias left out must show";
    if (k == 1) continue;  // of one product rounding may hide it
    EXPECT_GT(test::relative_error(small_product(a * 1.02, b, bias), expected), 4e-3);
  }
}

// A row or a column alone lies both ways.
TEST(SmallProduct, OfBfloat16WithAnOddDepthReadsNoNumberBehindIt) {
  if (!can_multiply_bfloat16_pairs()) GTEST_SKIP() << "a CPU without such instructions never takes it";
  const torch::Tensor row = torch::full({1, 4}, NAN).to(torch::kBFloat16);
  row.slice(1, 0, 3).fill_(1);
  EXPECT_TRUE(small_product(row.slice(1, 0, 3), torch::ones({3, 5}, torch::kBFloat16)).eq(3).all().item<bool>());
  const torch::Tensor numbers = torch::arange(8).to(torch::kBFloat16);
  const torch::Tensor column = numbers.as_strided({8, 1}, {1, 1});
  EXPECT_TRUE(small_product(column, torch::ones({1, 1}, torch::kBFloat16)).flatten().equal(numbers));
}

TEST(SmallProduct, RefusesMatricesThatDoNotFit) {
  if (!vectors_of_this_cpu()) GTEST_SKIP() << "a CPU without AVX2 never takes it";
  EXPECT_THROW(small_product(torch::ones({4, 6}), torch::ones({5, 4})), c10::Error);
}

TEST(SmallProduct, BitsOfAnElementDependNeitherOnItsNeighboursNorOnThreads) {
  torch::manual_seed(0);
  const torch::Tensor a = torch::randn({200, 300}), b = torch::randn({300, 160}), bias = torch::randn({160});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const torch::Tensor whole = small_product(a, b, bias);
  at::set_num_threads(3);
  EXPECT_TRUE(torch::equal(small_product(a, b, bias), whole));
  EXPECT_TRUE(torch::equal(small_product(a.slice(0, 0, 40), b, bias), whole.slice(0, 0, 40)));
  at::set_num_threads(threads);
  EXPECT_TRUE(torch::equal(small_product(a.slice(0, 11, 30), b, bias), whole.slice(0, 11, 30)));
  EXPECT_TRUE(torch::equal(small_product(a, b.slice(1, 5, 26), bias.slice(0, 5, 26)), whole.slice(1, 5, 26)));
}

TEST(SmallProduct, BitsDoNotDependOnHowItsMatricesLie) {
  if (!vectors_of_this_cpu()) GTEST_SKIP() << "a CPU without AVX2 never takes it";
  torch::manual_seed(0);
  const torch::Tensor a = torch::randn({700, 300}), b = torch::randn({300, 290}), whole = small_product(a, b);
  const torch::Tensor a_by_columns = a.t().contiguous().t(), b_by_columns = b.t().contiguous().t();
  EXPECT_TRUE(torch::equal(small_product(a_by_columns, b), whole)) << "whose left matrix is copied";
  EXPECT_TRUE(torch::equal(small_product(a_by_columns, b_by_columns), whole));
  EXPECT_TRUE(torch::equal(small_product(a_by_columns, b.slice(1, 0, 30)), whole.slice(1, 0, 30)));
}

TEST(SmallProduct, OfBatchesAddsToWhatIsThere) {
  torch::manual_seed(0);
  for (const auto& [m, k, n] : std::vector<ProductSizes>{{40, 70, 33}, {500, 20, 48}, {7, 300, 96}}) {
    const torch::Tensor a = torch::randn({5, m, k}), b = torch::randn({5, k, n}), before = torch::randn({5, m, n});
    const torch::Tensor expected = torch::bmm(a.to(torch::kFloat64), b.to(torch::kFloat64));
    const torch::Tensor a_by_columns = a.transpose(1, 2).contiguous().transpose(1, 2),
                        b_by_columns = b.transpose(1, 2).contiguous().transpose(1, 2);
    for (const Vectors vectors : kEachVectors) {
      for (const torch::Tensor& left : {a, a_by_columns}) {
        for (const torch::Tensor& right : {b, b_by_columns}) {
          const torch::Tensor fresh = before.clone(), added = before.clone();
          small_products(left, right, fresh, /*adds=*/false, vectors);
          small_products(left, right, added, /*adds=*/true, vectors);
          EXPECT_LE(test::relative_error(fresh, expected), 1e-6) << m << " " << k << " " << n;
          EXPECT_LE(test::relative_error(added, expected + before), 1e-6);
          EXPECT_GT(test::relative_error(added, expected), 1e-3) << "what was there must show";
        }
      }
    }
  }
  small_products(torch::ones({2, 0, 4}), torch::ones({2, 4, 4}), torch::empty({2, 0, 4}), false, kEachVectors[0]);
  const torch::Tensor scattered = torch::ones({2, 4, 4, 2}).select(3, 0);
  EXPECT_THROW(small_products(scattered, torch::ones({2, 4, 4}), torch::empty({2, 4, 4}), false, kEachVectors[0]),
               c10::Error);
}

TEST(SmallProduct, WhatIsNoNumberStaysInItsRowAndColumn) {
  const torch::Tensor a = torch::ones({30, 40}), b = torch::ones({40, 50});
  a[7][3].fill_(std::numeric_limits<float>::quiet_NaN());
  b[5][49].fill_(std::numeric_limits<float>::infinity());
  const torch::Tensor y = small_product(a, b);
  EXPECT_EQ(y.isnan().sum().item<int64_t>(), 50);
  EXPECT_EQ(y.isinf().sum().item<int64_t>(), 29);
}

TEST(SmallProduct, IsTheChoiceOfTheProcessorsKind) {
  if (!vectors_of_this_cpu()) GTEST_SKIP() << "a CPU without AVX2 never takes it";
  const torch::Tensor like = torch::zeros({1});
  const bool is_avx2 = vectors_of_this_cpu() == Vectors::kAvx2;  // takes every size, but for few rows
  EXPECT_TRUE(is_small_product(like, {512, 256, 256}));
  EXPECT_EQ(is_small_product(like, {513, 256, 256}), is_avx2);
  EXPECT_EQ(is_small_product(like, {256, 513, 256}), is_avx2);
  EXPECT_EQ(is_small_product(like, {31, 64, 64}), !is_avx2);
  EXPECT_FALSE(is_small_product(like, {4, 320, 1280}));
  EXPECT_FALSE(is_small_product(like, {0, 256, 256}));
  EXPECT_FALSE(is_small_product(like.to(torch::kFloat64), {64, 8, 8}));
  EXPECT_EQ(is_small_product(like.to(torch::kBFloat16), {7, 8, 8}), can_multiply_bfloat16_pairs());
  EXPECT_FALSE(is_small_product(like.to(torch::kBFloat16), {8, 7, 8}));
  EXPECT_FALSE(is_small_product(like.to(torch::kBFloat16), {8, 8, 7}));
  EXPECT_FALSE(is_small_product(like.to(torch::kBFloat16), {513, 256, 256}));
  CpuImplementation implementation;
  implementation.small_products = false;
  const CpuImplementationScope scope(implementation);
  EXPECT_FALSE(is_small_product(like, {512, 256, 256}));
}

}  // namespace
}  // namespace sdtune::model
