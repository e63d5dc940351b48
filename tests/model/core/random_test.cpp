#include "model/core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "model/core/draw_counter.h"

namespace sdtune::model {
namespace {

// The known answers of Random123's kat_vectors file for philox4x32-10.
TEST(Philox, KnownAnswers) {
  const auto words = [](const PhiloxBlock& block) { return std::vector<std::uint32_t>(block.word, block.word + 4); };
  EXPECT_EQ(words(philox4x32({{0, 0, 0, 0}}, 0, 0)),
            (std::vector<std::uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(words(philox4x32({{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u)),
            (std::vector<std::uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words(philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0)),
            (std::vector<std::uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(DrawNormal, BoxMullerAgreesWithDoublePrecision) {
  double worst = 0;
  for (std::uint32_t i = 0; i < 20000; ++i) {
    const PhiloxBlock bits = draw_block(1, draw_counter(0, 0, 0, false), i);
    const NormalPair pair = normal_pair(bits.word[0], bits.word[1]);
    const double radius = std::sqrt(-2 * std::log(((bits.word[0] >> 8) + 1.0) / 16777216.0));
    const double angle = 2 * M_PI * (bits.word[1] >> 8) / 16777216.0;
    worst = std::max({worst, std::abs(pair.first - radius * std::cos(angle)) / std::max(radius, 1e-3),
                      std::abs(pair.second - radius * std::sin(angle)) / std::max(radius, 1e-3)});
  }
  EXPECT_LT(worst, 5e-7);
}

TEST(DrawNormal, EdgesOfTheUniformAreFinite) {
  EXPECT_EQ(normal_pair(0xFFFFFFFFu, 0).first, 0.0f);                           // u = 1
  EXPECT_NEAR(normal_pair(0, 0).first, std::sqrt(2 * 24 * std::log(2)), 1e-5);  // u = 2^-24
}

// As the GPU computes them, and every build on the host, whatever processor its flags name.
TEST(DrawNormal, HasTheBitsOfOperationsThatAreRoundedOneByOne) {
  const torch::Tensor drawn = draw_normal({5, Draw::kNoise, 3, 4, false}, {4 * 1024});
  for (std::uint32_t block = 0; block < 1024; ++block) {
    float expected[4];
    normal_block(draw_block(5, draw_counter(0, 3, 4, false), block), expected);
    for (int i = 0; i < 4; ++i) ASSERT_EQ(drawn.const_data_ptr<float>()[4 * block + i], expected[i]) << block;
  }
}

TEST(DrawNormal, HasTheMomentsOfANormalDistribution) {
  const torch::Tensor x = draw_normal({7, Draw::kNoise, 3, 5, false}, {1'000'000}).to(torch::kFloat64);
  EXPECT_NEAR(x.mean().item<double>(), 0, 4e-3);
  EXPECT_NEAR(x.pow(2).mean().item<double>(), 1, 6e-3);
  EXPECT_NEAR(x.pow(3).mean().item<double>(), 0, 2e-2);
  EXPECT_NEAR(x.pow(4).mean().item<double>(), 3, 5e-2);
  EXPECT_NEAR((x.abs() < 1).to(torch::kFloat64).mean().item<double>(), 0.682689, 3e-3);
  // Neighbours do not know each other.
  EXPECT_NEAR((x.slice(0, 0, -1) * x.slice(0, 1)).mean().item<double>(), 0, 4e-3);
}

TEST(DrawNormal, DependsOnEachPartOfTheKeyAndOnNothingElse) {
  const DrawKey key{11, Draw::kNoise, 2, 9, false};
  const torch::Tensor first = draw_normal(key, {4, 8, 8});
  EXPECT_TRUE(first.equal(draw_normal(key, {4, 8, 8})));
  EXPECT_TRUE(first.flatten().slice(0, 0, 37).equal(draw_normal(key, {37})));  // a prefix, whatever the shape
  for (const DrawKey& other : {DrawKey{12, Draw::kNoise, 2, 9, false}, DrawKey{11, Draw::kLatent, 2, 9, false},
                               DrawKey{11, Draw::kNoise, 3, 9, false}, DrawKey{11, Draw::kNoise, 2, 10, false},
                               DrawKey{11, Draw::kNoise, 2, 9, true}, DrawKey{11, Draw::kNoise, 1ull << 40, 9, false},
                               DrawKey{11, Draw::kNoise, 2, 9 + (1ull << 40), false}}) {
    EXPECT_FALSE(first.equal(draw_normal(other, {4, 8, 8})));
  }
}

TEST(DrawNormal, IsTheSameInAnyBatchAndOnAnyNumberOfThreads) {
  const std::vector<SampleKey> keys{{5, 0, false}, {5, 1, false}, {5, 1, true}, {6, 0, false}};
  const torch::Tensor batch = draw_normal_batch(3, Draw::kNoise, keys, {4, 150, 151}, torch::kCPU);
  const torch::Tensor rest = draw_normal_batch(3, Draw::kNoise, {keys[2], keys[3]}, {4, 150, 151}, torch::kCPU);
  EXPECT_TRUE(batch.slice(0, 2).equal(rest));
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  EXPECT_TRUE(batch[1].equal(draw_normal({3, Draw::kNoise, 5, 1, false}, {4, 150, 151})));
  at::set_num_threads(threads);
}

TEST(DrawNormal, RefusesKeysThatTheCounterCannotHold) {
  EXPECT_THROW(draw_normal({0, Draw::kNoise, 1ull << kStepBits, 0, false}, {1}), c10::Error);
  EXPECT_THROW(draw_normal({0, Draw::kNoise, 0, 1ull << kSampleBits, false}, {1}), c10::Error);
}

TEST(DrawInteger, IsUniform) {
  std::vector<std::int64_t> counts(10);
  for (std::uint64_t sample = 0; sample < 20000; ++sample) {
    ++counts.at(static_cast<std::size_t>(draw_integer({1, Draw::kTimestep, 0, sample, false}, 10)));
  }
  double chi2 = 0;
  for (const std::int64_t count : counts) chi2 += (count - 2000.0) * (count - 2000.0) / 2000.0;
  EXPECT_LT(chi2, 27.9);  // 0.1 % of uniform draws lie above, for 9 degrees of freedom
  const torch::Tensor batch = draw_integer_batch(1, Draw::kTimestep, {{0, 3, false}, {4, 5, true}}, 1000);
  EXPECT_EQ(batch[1].item<std::int64_t>(), draw_integer({1, Draw::kTimestep, 4, 5, true}, 1000));
}

TEST(DrawUniform, LiesInTheUnitIntervalAndFillsIt) {
  double least = 1, most = 0, sum = 0;
  for (std::uint64_t sample = 0; sample < 5000; ++sample) {
    const double value = draw_uniform({2, Draw::kFlip, 1, sample, false});
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
  }
  EXPECT_GE(least, 0);
  EXPECT_LT(most, 1);
  EXPECT_LT(least, 0.01);
  EXPECT_GT(most, 0.99);
  EXPECT_NEAR(sum / 5000, 0.5, 0.02);
}

TEST(DrawPermutation, IsAPermutationAndEveryOneComesAsOften) {
  std::vector<std::int64_t> order = draw_permutation(1, Draw::kOrder, 3, 100);
  EXPECT_NE(order, draw_permutation(1, Draw::kOrder, 4, 100));
  std::sort(order.begin(), order.end());
  std::vector<std::int64_t> all(100);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
  std::map<std::vector<std::int64_t>, int> counts;
  for (std::uint64_t epoch = 0; epoch < 6000; ++epoch) ++counts[draw_permutation(9, Draw::kOrder, epoch, 3)];
  ASSERT_EQ(counts.size(), 6u);
  for (const auto& [permutation, count] : counts) EXPECT_NEAR(count, 1000, 130);
  EXPECT_TRUE(draw_permutation(1, Draw::kOrder, 0, 0).empty());
}

}  // namespace
}  // namespace sdtune::model
