#include "model/kernels/attention.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <vector>

#include "model/core/cpu_implementation.h"
#include "model/kernels/wide_attention.h"
#include "model/nn/attention.h"
#include "tests/support/relative_error.h"

namespace sdtune::model {
namespace {

using torch::autograd::variable_list;

struct Case {
  int64_t batch, heads, queries, keys, head;
};
// Whole blocks and parts of them, fewer queries or keys than a register has rows, heads that fill vectors and that do
// not.
const std::vector<Case> kCases = {{1, 1, 1, 1, 8},     {2, 3, 7, 5, 24},     {1, 2, 96, 120, 40}, {2, 2, 97, 121, 40},
                                  {1, 8, 256, 77, 40}, {1, 2, 300, 300, 64}, {1, 1, 130, 77, 80}, {1, 1, 64, 250, 160},
                                  {2, 4, 64, 64, 36},  {1, 4, 16, 77, 52},   {1, 1, 5, 7, 4}};

// What AVX-512 computes runs on every CPU, if slowly; its own powers of two only where it is.
std::vector<Vectors> each_way() {
  return {Vectors::kAvx2, Vectors::kAvx512ByAvx2, vectors_of_this_cpu().value()};
}

constexpr bool kSeesAll = false, kCausal = true;

torch::Tensor exact(const variable_list& x, bool causal = false) {
  const auto to = [](const torch::Tensor& y) { return y.to(torch::kFloat64).transpose(1, 2); };
  torch::Tensor scores = to(x[0]).matmul(to(x[1]).transpose(2, 3)) / std::sqrt(static_cast<double>(x[0].size(3)));
  if (causal) {
    const torch::Tensor seen = torch::ones({x[0].size(1), x[1].size(1)}, torch::kBool).tril();
    scores = scores.masked_fill(seen.logical_not(), -std::numeric_limits<double>::infinity());
  }
  return torch::softmax(scores, 3).matmul(to(x[2])).transpose(1, 2);
}

// q, k and v as projections give them: parts of wider rows.
variable_list inputs(const Case& c, torch::Dtype dtype = torch::kFloat32) {
  torch::manual_seed(0);
  const auto make = [&](int64_t rows) {
    return torch::randn({c.batch, rows, c.heads, c.head}).to(dtype).set_requires_grad(true);
  };
  return {make(c.queries), make(c.keys), make(c.keys)};
}

void expect_close(const Case& c, torch::Dtype dtype, double tolerance, Vectors vectors, bool causal = false) {
  const variable_list x = inputs(c, dtype);
  const torch::Tensor y = tiled_attention(x[0], x[1], x[2], causal, vectors), expected = exact(x, causal);
  EXPECT_EQ(y.scalar_type(), dtype);
  EXPECT_EQ(y.sizes(), x[0].sizes());
  EXPECT_TRUE(y.is_contiguous());
  EXPECT_LE(test::relative_error(y, expected), tolerance) << c.queries << " " << c.keys << " " << c.head;
  const torch::Tensor dy = torch::randn(y.sizes()).to(dtype);
  const variable_list ours = torch::autograd::grad({y}, x, {dy});
  const variable_list theirs = torch::autograd::grad({expected}, x, {dy.to(torch::kFloat64)});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ours[i].sizes(), x[i].sizes());
    // With one key the softmax is 1 and the gradients of q and k are rounding.
    if (c.keys == 1 && i < 2) continue;
    EXPECT_LE(test::relative_error(ours[i], theirs[i].to(torch::kFloat64)), 2 * tolerance)
        << i << " " << c.queries << " " << c.head;
  }
}

TEST(TiledAttention, AgreesWithDoublePrecisionForwardAndBackward) {
  for (const Case& c : kCases) {
    ASSERT_TRUE(can_attend_in_tiles(inputs(c)[0], inputs(c)[1], inputs(c)[2]));
    for (const Vectors vectors : each_way()) expect_close(c, torch::kFloat32, 1e-6, vectors);
  }
}

TEST(TiledAttention, RoundsBfloat16OnlyAtTheEnd) {
  for (const Case& c : kCases) {
    for (const Vectors vectors : each_way()) expect_close(c, torch::kBFloat16, 4e-3, vectors);
  }
}

// As LibTorch's own attention in bfloat16 does.
TEST(TiledAttention, PairsOfBfloat16RoundTheSoftmaxToo) {
  if (!can_multiply_bfloat16_pairs()) GTEST_SKIP() << "a CPU without such instructions never takes them";
  for (const Case& c : kCases) {
    expect_close(c, torch::kBFloat16, 4e-3, Vectors::kAvx512Bfloat16);
    const variable_list x = inputs(c, torch::kBFloat16);
    const auto to = [](const torch::Tensor& y) { return y.transpose(1, 2); };
    const torch::Tensor library = to(at::scaled_dot_product_attention(to(x[0]), to(x[1]), to(x[2]))), truth = exact(x);
    const torch::Tensor pairs = tiled_attention(x[0], x[1], x[2], kSeesAll, Vectors::kAvx512Bfloat16);
    EXPECT_LE(test::relative_error(pairs, truth), 1.1 * test::relative_error(library, truth)) << c.keys;
    EXPECT_GT(test::relative_error(pairs * 1.004, truth), 1.1 * test::relative_error(library, truth)) << c.keys;
  }
}

// What it loses is next to nothing beside the rounding to bfloat16, in the sums for the backward pass too.
TEST(TiledAttention, ShortExponentialsAreAsCloseAsLongOnes) {
  if (!can_multiply_bfloat16_pairs()) GTEST_SKIP() << "a CPU without such instructions never takes them";
  CpuImplementation chosen = default_cpu_implementation();
  const auto attend_by = [&](bool is_short, const variable_list& x, bool causal) {
    chosen.short_exponentials = is_short;
    const CpuImplementationScope scope(chosen);
    return tiled_attention(x[0], x[1], x[2], causal);
  };
  for (const Case& c : kCases) {
    const variable_list x = inputs(c, torch::kBFloat16), larger = {x[0] * 1.02, x[1], x[2]};
    const torch::Tensor truth = exact(x), dy = torch::randn(x[0].sizes()).to(torch::kBFloat16);
    const torch::Tensor found = attend_by(true, x, kSeesAll), as_before = attend_by(false, x, kSeesAll);
    const double most = 1.02 * test::relative_error(as_before, truth);
    EXPECT_LE(test::relative_error(found, truth), most) << c.queries << " " << c.keys;
    if (c.keys == 1) continue;  // the softmax is 1 whatever the score
    EXPECT_GT(test::relative_error(attend_by(true, larger, kSeesAll), truth), most) << c.queries << " " << c.keys;
    const variable_list ours = torch::autograd::grad({found}, x, {dy});
    const variable_list others = torch::autograd::grad({as_before}, x, {dy});
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_LE(test::relative_error(ours[i], others[i].to(torch::kFloat64)), 2e-3) << i << " " << c.queries;
    }
  }
  const variable_list x = inputs({2, 4, 77, 77, 32}, torch::kBFloat16);
  EXPECT_LE(test::relative_error(attend_by(true, x, kCausal), exact(x, kCausal)), 4e-3);
  EXPECT_FALSE(torch::equal(attend_by(true, x, kSeesAll), attend_by(false, x, kSeesAll)));
}

// An autoencoder's head, without gradients: with whole tiles of queries and keys and with parts of them.
TEST(TiledAttention, WideHeadsGoByPairsWhereNoGradientIsAskedFor) {
  const Case c{1, 1, 200, 250, 512};
  variable_list x = inputs(c, torch::kBFloat16);
  EXPECT_FALSE(can_attend_in_tiles(x[0], x[1], x[2])) << "a gradient is asked for";
  for (torch::Tensor& y : x) y.requires_grad_(false);
  EXPECT_EQ(can_attend_in_tiles(x[0], x[1], x[2]), can_multiply_bfloat16_pairs());
  const variable_list floats = {x[0].to(torch::kFloat32), x[1].to(torch::kFloat32), x[2].to(torch::kFloat32)};
  EXPECT_FALSE(can_attend_in_tiles(floats[0], floats[1], floats[2])) << "float32";
  if (!can_multiply_bfloat16_pairs()) GTEST_SKIP() << "a CPU without such instructions never takes them";
  const torch::Tensor expected = exact(x);
  const torch::Tensor pairs = attend(x[0], x[1], x[2], kSeesAll, /*upcast=*/false);
  EXPECT_TRUE(torch::equal(pairs, tiled_attention(x[0], x[1], x[2], kSeesAll)));
  EXPECT_LE(test::relative_error(pairs, expected), 4e-3);
  EXPECT_GT(test::relative_error(pairs * 1.01, expected), 4e-3);
  CpuImplementation chosen = default_cpu_implementation();
  chosen.bfloat16_pairs = false;
  const CpuImplementationScope scope(chosen);
  EXPECT_TRUE(torch::equal(attend(x[0], x[1], x[2], kSeesAll, /*upcast=*/false), attend_wide(x[0], x[1], x[2])));
}

// The factor of the scores is in dq and dk, that of the softmax' gradient in all of them.
TEST(TiledAttention, GradientsByPairsAreAsCloseAsTheLibrarys) {
  if (!can_multiply_bfloat16_pairs()) GTEST_SKIP() << "a CPU without such instructions never takes them";
  for (const Case& c : kCases) {
    if (c.keys == 1) continue;  // the softmax is 1, and the gradients of q and k are rounding
    const variable_list x = inputs(c, torch::kBFloat16);
    const auto to = [](const torch::Tensor& y) { return y.transpose(1, 2); };
    const torch::Tensor dy = torch::randn(x[0].sizes()).to(torch::kBFloat16);
    const torch::Tensor library = at::scaled_dot_product_attention(to(x[0]), to(x[1]), to(x[2]));
    const variable_list truth = torch::autograd::grad({exact(x)}, x, {dy.to(torch::kFloat64)});
    const variable_list theirs = torch::autograd::grad({to(library)}, x, {dy});
    const torch::Tensor pairs = tiled_attention(x[0], x[1], x[2], kSeesAll, Vectors::kAvx512Bfloat16);
    const variable_list ours = torch::autograd::grad({pairs}, x, {dy});
    for (std::size_t i = 0; i < 3; ++i) {
      const double most = 1.1 * test::relative_error(theirs[i], truth[i]);
      EXPECT_LE(test::relative_error(ours[i], truth[i]), most) << i << " " << c.queries << " " << c.keys;
      EXPECT_GT(test::relative_error(ours[i] * 1.01, truth[i]), most) << i << " " << c.queries << " " << c.keys;
    }
  }
}

// As text encoders ask for it; also with queries and keys in several tiles, of which some hold no key that is seen.
TEST(TiledAttention, CausalQueriesSeeNoLaterKey) {
  for (const Case& c : {Case{2, 4, 77, 77, 32}, {1, 2, 300, 300, 64}, {1, 1, 97, 121, 40}, {1, 1, 250, 64, 8}}) {
    for (const Vectors vectors : each_way()) {
      expect_close(c, torch::kFloat32, 1e-6, vectors, kCausal);
      expect_close(c, torch::kBFloat16, 4e-3, vectors, kCausal);
    }
    if (can_multiply_bfloat16_pairs()) {
      expect_close(c, torch::kBFloat16, 4e-3, Vectors::kAvx512Bfloat16, kCausal);
    }
    const variable_list x = inputs(c);
    const torch::Tensor y = tiled_attention(x[0], x[1], x[2], kCausal);
    EXPECT_GT(test::relative_error(y, exact(x)), 1e-2) << "all keys seen";
    variable_list changed = {x[0], x[1].detach().clone(), x[2].detach().clone()};
    for (std::size_t i = 1; i < 3; ++i) changed[i].slice(1, 40).mul_(3);
    const torch::Tensor after = tiled_attention(changed[0], changed[1], changed[2], kCausal);
    EXPECT_TRUE(torch::equal(after.slice(1, 0, 40), y.slice(1, 0, 40)));
    EXPECT_FALSE(torch::equal(after.slice(1, 0, 41), y.slice(1, 0, 41)));
  }
}

TEST(TiledAttention, PairsAreTheChoiceOfTheProcessorsKind) {
  if (!can_multiply_bfloat16_pairs()) GTEST_SKIP() << "a CPU without such instructions never takes them";
  const variable_list x = inputs(kCases[4], torch::kBFloat16);
  CpuImplementation implementation = default_cpu_implementation();
  implementation.short_exponentials = false;  // as with the vectors named
  for (const bool by_pairs : {true, false}) {
    implementation.bfloat16_pairs = by_pairs;
    const CpuImplementationScope scope(implementation);
    const torch::Tensor y = tiled_attention(x[0], x[1], x[2], kSeesAll);
    EXPECT_EQ(y.equal(tiled_attention(x[0], x[1], x[2], kSeesAll, Vectors::kAvx512Bfloat16)), by_pairs);
    EXPECT_EQ(y.equal(tiled_attention(x[0], x[1], x[2], kSeesAll, Vectors::kAvx512)), !by_pairs);
  }
  implementation.bfloat16_pairs = true;  // so that the results are equal, from which gradients are computed
  const auto gradient = [&x](const torch::Tensor& y) {
    return torch::autograd::grad({y}, {x[0]}, {torch::ones_like(y)})[0];
  };
  const torch::Tensor by_pairs = gradient(tiled_attention(x[0], x[1], x[2], kSeesAll, Vectors::kAvx512Bfloat16));
  for (const bool backward_too : {true, false}) {
    implementation.backward_pairs = backward_too;
    const CpuImplementationScope scope(implementation);
    EXPECT_EQ(gradient(tiled_attention(x[0], x[1], x[2], kSeesAll)).equal(by_pairs), backward_too);
  }
}

TEST(TiledAttention, WhatIsNoNumberStaysNone) {
  variable_list x = inputs(kCases[4], torch::kBFloat16);
  x[1] = x[1].detach().clone();
  x[1][0][5].fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(tiled_attention(x[0], x[1], x[2], kSeesAll).isnan().all().item<bool>());
}

TEST(TiledAttention, TheFactorOfTheScoresShows) {
  const variable_list x = inputs(kCases[4]);
  EXPECT_GT(test::relative_error(tiled_attention(x[0] * 1.01, x[1], x[2], kSeesAll), exact(x)), 1e-4);
}

TEST(TiledAttention, TakesPartsOfWiderRowsAndExpandedKeys) {
  torch::manual_seed(0);
  const torch::Tensor rows = torch::randn({2, 33, 3, 2, 40});
  const torch::Tensor keys = torch::randn({1, 9, 2, 40}).expand({2, 9, 2, 40}),
                      values = torch::randn({2, 2, 9, 40}).transpose(1, 2);
  EXPECT_LE(test::relative_error(tiled_attention(rows.select(2, 1), keys, values, kSeesAll),
                                 exact({rows.select(2, 1), keys, values})),
            1e-6);
}

TEST(TiledAttention, LargeScoresNeitherOverflowNorVanish) {
  variable_list x = inputs(kCases[3]);
  for (torch::Tensor& each : x) each = each.detach();
  x[0] *= 100;
  EXPECT_LE(test::relative_error(tiled_attention(x[0], x[1], x[2], kSeesAll), exact(x)), 2e-5);
}

TEST(TiledAttention, NotANumberStaysInItsRowOfQueries) {
  variable_list x = inputs(kCases[4]);
  for (torch::Tensor& each : x) each = each.detach();
  x[0][0][10][3][5] = std::nan("");
  EXPECT_EQ(tiled_attention(x[0], x[1], x[2], kSeesAll).isnan().sum().item<int64_t>(), kCases[4].head);
  x[1][0][3][2][1] = std::nan("");  // a key: all queries of its head
  EXPECT_EQ(tiled_attention(x[0], x[1], x[2], kSeesAll).isnan().sum().item<int64_t>(),
            kCases[4].head * (kCases[4].queries + 1));
}

TEST(TiledAttention, BitsDependNeitherOnBatchNorOnThreads) {
  for (const torch::Dtype dtype : {torch::kFloat32, torch::kBFloat16}) {
    const variable_list x = inputs({3, 2, 200, 130, 40}, dtype);
    const auto run = [](const variable_list& y) {
      const torch::Tensor out = tiled_attention(y[0], y[1], y[2], kSeesAll);
      variable_list all = torch::autograd::grad({out}, y, {torch::ones_like(out)});
      all.push_back(out.detach());
      return all;
    };
    const int threads = at::get_num_threads();
    at::set_num_threads(1);
    const variable_list alone = run(x);
    at::set_num_threads(2);
    const variable_list together = run(x);
    at::set_num_threads(threads);
    variable_list second;
    for (const torch::Tensor& each : x) second.push_back(each.detach().slice(0, 1, 2).clone().set_requires_grad(true));
    const variable_list one = run(second);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(torch::equal(alone[i], together[i]));
      EXPECT_TRUE(torch::equal(alone[i].slice(0, 1, 2), one[i]));
    }
  }
}

TEST(TiledAttention, LeavesTheRestToLibTorch) {
  const auto of = [](int64_t head, torch::Dtype dtype) { return torch::zeros({1, 4, 2, head}, dtype); };
  const auto can = [](const torch::Tensor& x) { return can_attend_in_tiles(x, x, x); };
  EXPECT_TRUE(can(of(20, torch::kFloat32)));
  EXPECT_FALSE(can(of(18, torch::kFloat32)));
  EXPECT_FALSE(can(of(168, torch::kFloat32)));
  EXPECT_FALSE(can(of(40, torch::kFloat64)));
  EXPECT_FALSE(can(of(40, torch::kFloat16)));
  EXPECT_FALSE(can_attend_in_tiles(of(40, torch::kFloat32), of(40, torch::kBFloat16), of(40, torch::kFloat32)));
}

// Of fewer samples, heads or values than the queries' the tiles would read what lies behind them.
TEST(TiledAttention, TakesKeysAndValuesOfItsQueriesAlone) {
  const auto of = [](int64_t batch, int64_t rows, int64_t heads) { return torch::zeros({batch, rows, heads, 8}); };
  const torch::Tensor q = of(2, 7, 2), k = of(2, 5, 2);
  EXPECT_TRUE(can_attend_in_tiles(q, k, k) == vectors_of_this_cpu().has_value());
  EXPECT_FALSE(can_attend_in_tiles(q, of(1, 5, 2), of(1, 5, 2)));
  EXPECT_FALSE(can_attend_in_tiles(q, of(2, 5, 1), of(2, 5, 1)));
  EXPECT_FALSE(can_attend_in_tiles(q, k, of(2, 4, 2)));
  EXPECT_FALSE(can_attend_in_tiles(q, k.narrow(3, 0, 4), k.narrow(3, 0, 4)));
}

}  // namespace
}  // namespace sdtune::model
