#include "model/kernels/upsampled_conv2d.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "model/kernels/float32_compute.h"
#include "model/nn/resample.h"
#include "tests/support/relative_error.h"

namespace sdtune::model {
namespace {

torch::Tensor map_of(int64_t channels, int64_t height, int64_t width, torch::Dtype dtype) {
  return torch::randn({2, channels, height, width}).to(dtype).contiguous(torch::MemoryFormat::ChannelsLast);
}

torch::Tensor stated(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  const auto to = [](const torch::Tensor& y) { return y.to(torch::kFloat64); };
  const torch::Tensor doubled = torch::upsample_nearest2d(to(x), {2 * x.size(2), 2 * x.size(3)});
  return torch::conv2d(doubled, to(weight), to(bias), 1, 1);
}

// Borders too, where the doubled map is padded. The mutant of the tolerance: one weight's sum with its neighbour's.
TEST(UpsampledConv2d, IsTheConvolutionOfTheDoubledMap) {
  torch::manual_seed(0);
  for (const auto& [dtype, tolerance] : {std::pair{torch::kFloat32, 1e-6}, std::pair{torch::kBFloat16, 4e-3}}) {
    const torch::Tensor x = map_of(12, 64, 70, dtype), weight = torch::randn({20, 12, 3, 3}).to(dtype);
    const torch::Tensor bias = torch::randn({20}).to(dtype);
    EXPECT_EQ(can_convolve_upsampled(x, weight, bias), !computes_in_float32(x));
    const torch::Tensor y = upsampled_conv2d(x, weight, bias), expected = stated(x, weight, bias);
    EXPECT_EQ(y.scalar_type(), dtype);
    EXPECT_TRUE(y.is_contiguous(torch::MemoryFormat::ChannelsLast));
    EXPECT_LE(test::relative_error(y, expected), tolerance);
    torch::Tensor wrong = weight.clone();
    wrong.select(3, 0).select(2, 0).copy_(weight.select(3, 1).select(2, 0));
    EXPECT_GT(test::relative_error(stated(x, wrong, bias), expected), 50 * 4e-3);
  }
}

TEST(UpsampledConv2d, IsForLargeMapsWithoutGradients) {
  torch::Tensor weight = torch::randn({8, 8, 3, 3});
  const torch::Tensor bias = torch::randn({8}), large = map_of(8, 64, 64, torch::kFloat32);
  EXPECT_TRUE(can_convolve_upsampled(large, weight, bias));
  EXPECT_FALSE(can_convolve_upsampled(large.contiguous(), weight, bias));
  EXPECT_FALSE(can_convolve_upsampled(map_of(8, 63, 64, torch::kFloat32), weight, bias));
  weight.set_requires_grad(true);
  EXPECT_FALSE(can_convolve_upsampled(large, weight, bias));
}

// The layer takes it without gradients, and means the same with them.
TEST(UpsampledConv2d, IsWhatTheLayerComputes) {
  torch::manual_seed(0);
  Upsample2D layer(16);
  const torch::Tensor x = map_of(16, 64, 64, torch::kFloat32);
  const torch::Tensor with_gradients = layer(x, 128, 128);
  EXPECT_TRUE(with_gradients.requires_grad());
  const torch::NoGradGuard no_grad;
  const torch::Tensor without = layer(x, 128, 128);
  EXPECT_LE(test::relative_error(without, with_gradients.detach().to(torch::kFloat64)), 1e-6);
  EXPECT_EQ(layer(x, 127, 128).size(2), 127);  // not twice the size: diffusers' odd maps
}

}  // namespace
}  // namespace sdtune::model
