#include "model/kernels/winograd_tiles.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "tests/support/relative_error.h"

namespace sdtune::model::winograd {
namespace {

constexpr int64_t kChannels = 32;

// What each transform makes of the same random numbers, by one kind of CPU.
struct Results {
  torch::Tensor input, output, output_gradient, kernel, flipped, kernel_gradient, input_bfloat16, output_bfloat16,
      panel, flipped_panel;
  std::vector<torch::Tensor> all() const {
    return {input,           output,         output_gradient, kernel, flipped,
            kernel_gradient, input_bfloat16, output_bfloat16, panel,  flipped_panel};
  }
};

torch::Tensor rounded(const torch::Tensor& pixels) {
  return pixels.to(torch::kBFloat16);
}

// Where each row of a matrix with kChannels columns begins.
template <class Number, std::size_t kRows>
std::array<Number*, kRows> rows_of(const torch::Tensor& matrix) {
  std::array<Number*, kRows> rows;
  for (std::size_t i = 0; i < kRows; ++i) rows[i] = matrix.mutable_data_ptr<Number>() + i * kChannels;
  return rows;
}

Results transform(Vectors vectors) {
  torch::manual_seed(0);
  const Transforms& run = transforms(vectors);
  const torch::Tensor pixels = torch::randn({kPositions, kChannels}), bias = torch::randn({kChannels});
  const torch::Tensor kernels = torch::randn({kChannels, kTaps}), sums = torch::randn({kPositions, kChannels});
  const torch::Tensor rounded_pixels = rounded(pixels);
  const auto from = rows_of<float, kPositions>(pixels);
  const auto result = [] { return torch::empty({kPositions, kChannels}); };
  const auto at = [](const torch::Tensor& t) { return Positions{t.mutable_data_ptr<float>(), kChannels}; };
  const ConstPositions sums_at = {sums.const_data_ptr<float>(), kChannels};
  constexpr int64_t kDepth = 8;
  const torch::Tensor deep_kernels = torch::randn({kChannelGroup, kDepth, kTaps});
  const auto panel = [] { return torch::empty({kPositions, kDepth * kChannelGroup}); };
  const auto tile = [](torch::Dtype dtype) { return torch::empty({kTile * kTile, kChannels}, dtype); };
  Results out = {result(), tile(torch::kFloat32),  result(), result(), result(), torch::empty({kChannels, kTaps}),
                 result(), tile(torch::kBFloat16), panel(),  panel()};
  const auto to = rows_of<float, kTile * kTile>(out.output);
  run.input_bfloat16(rows_of<c10::BFloat16, kPositions>(rounded_pixels).data(), kChannels, at(out.input_bfloat16));
  run.output_bfloat16(sums_at, bias.const_data_ptr<float>(), kChannels,
                      rows_of<c10::BFloat16, kTile * kTile>(out.output_bfloat16).data());
  run.input(from.data(), kChannels, at(out.input));
  run.output(sums_at, bias.const_data_ptr<float>(), kChannels, to.data());
  run.output_gradient(from.data(), kChannels, at(out.output_gradient));
  run.kernel(kernels.const_data_ptr<float>(), kChannels, false, at(out.kernel));
  run.kernel(kernels.const_data_ptr<float>(), kChannels, true, at(out.flipped));
  const float* deep = deep_kernels.const_data_ptr<float>();
  const auto in_panel = [](const torch::Tensor& t) { return Positions{t.mutable_data_ptr<float>(), t.size(1)}; };
  run.kernel_panel({deep, kDepth, kTaps, kDepth * kTaps}, false, in_panel(out.panel));
  run.kernel_panel({deep, kDepth, kChannelGroup * kTaps, kTaps}, true, in_panel(out.flipped_panel));
  run.kernel_gradient(sums_at, kChannels, out.kernel_gradient.mutable_data_ptr<float>());
  return out;
}

class WinogradTransforms : public testing::Test {
 protected:
  void SetUp() override {
    if (!vectors_of_this_cpu()) GTEST_SKIP() << "a CPU without AVX2 never takes them";
  }
};

TEST_F(WinogradTransforms, HaveTheSameBitsOnEveryKindOfCpu) {
  const std::vector<torch::Tensor> expected = transform(Vectors::kAvx2).all();
  for (const Vectors vectors : {Vectors::kAvx512ByAvx2, vectors_of_this_cpu().value()}) {
    const std::vector<torch::Tensor> found = transform(vectors).all();
    for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i].equal(expected[i])) << "transform " << i;
  }
}

// What is read of bfloat16 is what it is in float32, and what is written is what would be in float32, rounded.
TEST_F(WinogradTransforms, OfBfloat16RoundOnlyWhatTheyWrite) {
  torch::manual_seed(2);
  const Transforms& run = transforms(vectors_of_this_cpu().value());
  const torch::Tensor pixels = rounded(torch::randn({kPositions, kChannels})), same = pixels.to(torch::kFloat32);
  const torch::Tensor found = torch::empty({kPositions, kChannels}), expected = torch::empty({kPositions, kChannels});
  run.input_bfloat16(rows_of<c10::BFloat16, kPositions>(pixels).data(), kChannels,
                     {found.mutable_data_ptr<float>(), kChannels});
  run.input(rows_of<float, kPositions>(same).data(), kChannels, {expected.mutable_data_ptr<float>(), kChannels});
  EXPECT_TRUE(found.equal(expected));
  torch::Tensor sums = torch::randn({kPositions, kChannels});
  sums[0][3] = std::numeric_limits<float>::quiet_NaN();
  const torch::Tensor exact = torch::empty({kTile * kTile, kChannels});
  const torch::Tensor written = torch::empty({kTile * kTile, kChannels}, torch::kBFloat16);
  run.output({sums.const_data_ptr<float>(), kChannels}, nullptr, kChannels,
             rows_of<float, kTile * kTile>(exact).data());
  run.output_bfloat16({sums.const_data_ptr<float>(), kChannels}, nullptr, kChannels,
                      rows_of<c10::BFloat16, kTile * kTile>(written).data());
  EXPECT_TRUE(written.isnan().equal(exact.isnan()) && written.isnan().any().item<bool>());
  EXPECT_TRUE(written.nan_to_num().equal(rounded(exact).nan_to_num()));
}

// Positions that lie a multiple of 4096 bytes apart are written many channels at a time, here 128 and 80.
TEST_F(WinogradTransforms, HaveTheSameBitsHoweverFarPositionsLieApart) {
  torch::manual_seed(3);
  constexpr int64_t kMany = 208, kAliased = 1024, kSpread = 1040;
  const torch::Tensor pixels = torch::randn({kPositions, kMany}), kernels = torch::randn({kMany, kTaps});
  std::array<const float*, kPositions> from;
  for (int64_t i = 0; i < kPositions; ++i) from[i] = pixels.const_data_ptr<float>() + i * kMany;
  for (const Vectors vectors : {Vectors::kAvx2, Vectors::kAvx512ByAvx2, vectors_of_this_cpu().value()}) {
    const Transforms& run = transforms(vectors);
    const auto all = [&](int64_t step) {
      const torch::Tensor out = torch::full({3, kPositions, step}, 7.0F);
      const auto at = [&](int64_t i) { return Positions{out[i].mutable_data_ptr<float>(), step}; };
      run.input(from.data(), kMany, at(0));
      run.output_gradient(from.data(), kMany, at(1));
      run.kernel(kernels.const_data_ptr<float>(), kMany, false, at(2));
      EXPECT_TRUE((out.slice(2, kMany) == 7.0F).all().item<bool>()) << "written beyond the channels";
      return out.slice(2, 0, kMany);
    };
    EXPECT_TRUE(all(kAliased).equal(all(kSpread)));
  }
}

// One row of a tile: y_k = sum of g_i d_(k + i), for the first four.
TEST_F(WinogradTransforms, TogetherAreAConvolution) {
  torch::manual_seed(1);
  const Transforms& run = transforms(vectors_of_this_cpu().value());
  const torch::Tensor pixels = torch::randn({6, 6, kChannels}), kernels = torch::randn({kChannels, 3, 3});
  const torch::Tensor v = torch::empty({kPositions, kChannels}), u = torch::empty({kPositions, kChannels});
  std::array<const float*, kPositions> from;
  for (int64_t i = 0; i < kPositions; ++i) from[i] = pixels.const_data_ptr<float>() + i * kChannels;
  run.input(from.data(), kChannels, {v.mutable_data_ptr<float>(), kChannels});
  run.kernel(kernels.const_data_ptr<float>(), kChannels, false, {u.mutable_data_ptr<float>(), kChannels});
  const torch::Tensor m = u * v, y = torch::empty({kTile, kTile, kChannels});
  std::array<float*, kTile * kTile> to;
  for (int64_t i = 0; i < kTile * kTile; ++i) to[i] = y.mutable_data_ptr<float>() + i * kChannels;
  run.output({m.const_data_ptr<float>(), kChannels}, nullptr, kChannels, to.data());
  const torch::Tensor expected = torch::conv2d(pixels.permute({2, 0, 1}).unsqueeze(0).to(torch::kFloat64),
                                               kernels.unsqueeze(1).to(torch::kFloat64), std::nullopt,
                                               at::IntArrayRef(1), at::IntArrayRef(0), at::IntArrayRef(1), kChannels)
                                     .squeeze(0)
                                     .permute({1, 2, 0});
  EXPECT_LE(test::relative_error(y, expected), 2e-6);
  EXPECT_GT(test::relative_error(y.flip(0), expected), 1e-2);
}

}  // namespace
}  // namespace sdtune::model::winograd
