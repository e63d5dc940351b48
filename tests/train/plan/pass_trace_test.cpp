#include "train/plan/pass_trace.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/conv.h>

#include "model/kernels/attention.h"
#include "model/kernels/conv2d.h"
#include "model/kernels/matrix_product.h"
#include "model/nn/attention.h"

namespace sdtune::train {
namespace {

TEST(PassTrace, CountsWhatLivesInEachPiece) {
  torch::Tensor kept;
  const PassCost cost = trace_pass([&](const MarkPiece& mark) {
    mark("first");
    torch::Tensor a = torch::empty({1000}, torch::kFloat32);
    torch::Tensor b = torch::empty({500}, torch::kFloat32);
    a.reset();
    mark("second");
    kept = torch::empty({250}, torch::kFloat64);
  });
  ASSERT_EQ(cost.pieces.size(), 2u);
  EXPECT_EQ(cost.pieces[0].name, "first");
  EXPECT_EQ(cost.pieces[0].peak_bytes, 6000);
  EXPECT_EQ(cost.pieces[0].end_bytes, 2000);
  EXPECT_EQ(cost.pieces[1].peak_bytes, 4000);
  EXPECT_EQ(cost.peak_bytes(), 6000);
}

TEST(PassTrace, CountsProductsAndConvolutionsOfBothDirections) {
  const torch::Tensor x = torch::ones({2, 3, 8, 8}).set_requires_grad(true);
  const torch::Tensor weight = torch::ones({5, 3, 3, 3}).set_requires_grad(true);
  const torch::Tensor matrix = torch::ones({4, 6}), other = torch::ones({6, 7});
  const PassCost product = trace_pass([&](const MarkPiece&) { matrix.mm(other); });
  EXPECT_EQ(product.flops, 2.0 * 4 * 6 * 7);
  const double once = 2.0 * (2 * 4 * 4) * (5 * 3 * 3 * 3);  // 2 images of 4 x 4 outputs
  const PassCost convolution =
      trace_pass([&](const MarkPiece&) { torch::conv2d(x, weight, {}, /*stride=*/2, /*padding=*/1).sum().backward(); });
  EXPECT_EQ(convolution.flops, 3 * once);
  EXPECT_EQ(convolution.attention_flops, 0.0);
  const torch::Tensor fixed = weight.detach();
  const PassCost frozen =
      trace_pass([&](const MarkPiece&) { torch::conv2d(x, fixed, {}, /*stride=*/2, /*padding=*/1).sum().backward(); });
  EXPECT_EQ(frozen.flops, 2 * once);  // no gradient of the weight
}

// One of the two libraries multiplies, by the processor: the operations are the same.
TEST(PassTrace, CountsProductsOfEitherLibrary) {
  const torch::Tensor x = torch::ones({4, 64, 128}).set_requires_grad(true);
  const torch::Tensor weight = torch::ones({256, 128}).set_requires_grad(true);
  const double once = 2.0 * 4 * 64 * 128 * 256;
  if (model::can_multiply_by_onednn()) {
    EXPECT_EQ(trace_pass([&](const MarkPiece&) { model::onednn_linear(x, weight).sum().backward(); }).flops, 3 * once);
  }
  EXPECT_EQ(trace_pass([&](const MarkPiece&) { model::apply_linear(x, weight).sum().backward(); }).flops, 3 * once);
}

// Products of patches are operators of their own beneath the convolution, which has their work already.
TEST(PassTrace, CountsConvolutionsByProductsOnce) {
  const torch::Tensor weight = torch::ones({64, 32, 3, 3}).set_requires_grad(true), bias = torch::ones({64});
  const torch::Tensor map = torch::ones({1, 32, 8, 8}).contiguous(torch::MemoryFormat::ChannelsLast);
  const double once = 2.0 * 8 * 8 * 64 * 32 * 9;
  const auto convolution_of = [&](torch::Dtype dtype) {
    const torch::Tensor x = map.to(dtype).requires_grad_(true), matrix = weight.to(dtype), added = bias.to(dtype);
    return trace_pass([&](const MarkPiece&) {
      model::conv2d(x, matrix, added, {.stride = 1, .padding = 1}).to(torch::kFloat32).sum().backward();
    });
  };
  EXPECT_EQ(convolution_of(torch::kFloat32).flops, 3 * once);
  EXPECT_EQ(convolution_of(torch::kBFloat16).flops, 3 * once);
}

TEST(PassTrace, TellsAttentionToPixelsFromAttentionToText) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor q = torch::ones({2, 4, 64, 8}), text = torch::ones({2, 4, 77, 8});
  const PassCost pixels = trace_pass([&](const MarkPiece&) { torch::scaled_dot_product_attention(q, q, q); });
  EXPECT_EQ(pixels.attention_flops, 4.0 * 2 * 4 * 64 * 64 * 8);
  EXPECT_EQ(pixels.flops, 0.0);
  const PassCost words = trace_pass([&](const MarkPiece&) { torch::scaled_dot_product_attention(q, text, text); });
  EXPECT_EQ(words.flops, 4.0 * 2 * 4 * 64 * 77 * 8);
}

// A text's attention to itself does not grow with the image.
TEST(PassTrace, TellsAttentionWithinATextFromThatOfPixels) {
  for (const bool in_tiles : {false, true}) {
    const torch::Tensor any = torch::ones({2, 77, 4, 8});
    if (in_tiles && !model::can_attend_in_tiles(any, any, any)) continue;
    const auto cost_of = [in_tiles](bool causal) {
      const torch::Tensor x = torch::ones({2, 77, 4, 8}).set_requires_grad(true);
      return trace_pass([&](const MarkPiece&) {
        if (in_tiles) return model::tiled_attention(x, x, x, causal).sum().backward();
        const torch::Tensor rows = x.transpose(1, 2);
        torch::scaled_dot_product_attention(rows, rows, rows, std::nullopt, 0.0, causal).sum().backward();
      });
    };
    const double both = (4.0 + 10.0) * 2 * 4 * 77 * 77 * 8;
    EXPECT_EQ(cost_of(true).flops, both) << in_tiles;
    EXPECT_EQ(cost_of(true).attention_flops, 0.0) << in_tiles;
    EXPECT_EQ(cost_of(false).attention_flops, both) << in_tiles;
  }
}

TEST(PassTrace, CountsTextEncodersApart) {
  const torch::Tensor matrix = torch::ones({4, 6}), other = torch::ones({6, 7});
  const double once = 2.0 * 4 * 6 * 7;
  const PassCost cost = trace_pass([&](const MarkPiece&) {
    for (int i = 0; i < 3; ++i) {
      const TextScope text;
      matrix.mm(other);
    }
    matrix.mm(other);
  });
  EXPECT_EQ(cost.text_flops, 3 * once);
  EXPECT_EQ(cost.flops, once);
}

}  // namespace
}  // namespace sdtune::train
