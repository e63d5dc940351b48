#include "model/unet/unet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <algorithm>

#include "model/core/cpu_implementation.h"
#include "model/kernels/matrix_product.h"
#include "model/nn/initial_values.h"
#include "tests/support/relative_error.h"
#include "tests/support/small_unet.h"

namespace sdtune::model {
namespace {

TEST(UNet, ParametersHaveDiffusersNames) {
  const auto parameters = UNet2DConditionModel(test::small_unet())->named_parameters();
  for (const char* name :
       {"conv_in.weight", "time_embedding.linear_1.weight", "time_embedding.linear_2.bias",
        "down_blocks.0.resnets.0.norm1.weight", "down_blocks.0.resnets.0.time_emb_proj.weight",
        "down_blocks.0.attentions.0.proj_in.weight",
        "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_out.0.weight",
        "down_blocks.0.attentions.0.transformer_blocks.0.attn2.to_k.weight",
        "down_blocks.0.attentions.0.transformer_blocks.0.ff.net.0.proj.weight",
        "down_blocks.0.attentions.0.transformer_blocks.0.ff.net.2.bias", "down_blocks.0.downsamplers.0.conv.weight",
        "down_blocks.1.resnets.0.conv_shortcut.weight", "mid_block.attentions.0.norm.weight",
        "mid_block.resnets.1.conv2.bias", "up_blocks.0.upsamplers.0.conv.weight",
        "up_blocks.1.attentions.1.proj_out.bias", "conv_norm_out.weight", "conv_out.bias"}) {
    EXPECT_TRUE(parameters.contains(name)) << name;
  }
  EXPECT_FALSE(parameters.contains("down_blocks.1.downsamplers.0.conv.weight"));
}

// The published numbers of parameters.
TEST(UNet, HasTheRealModelsNumberOfParameters) {
  const WithoutInitialValues quick;
  const auto count = [](const UNetConfig& config) {
    int64_t sum = 0;
    for (const torch::Tensor& parameter : UNet2DConditionModel(config)->parameters()) sum += parameter.numel();
    return sum;
  };
  UNetConfig config;
  config.cross_attention_dim.assign(4, 768);
  EXPECT_EQ(count(config), 859'520'964);  // SD 1.5
  config.cross_attention_dim.assign(4, 1024);
  config.num_attention_heads = {5, 10, 20, 20};
  config.use_linear_projection = true;
  EXPECT_EQ(count(config), 865'910'724);  // SD 2.1
}

TEST(UNet, RefusesWrongShapesByName) {
  UNet2DConditionModel unet(test::small_unet());
  const torch::Tensor time = torch::tensor({1}), context = torch::zeros({1, 77, 16});
  const auto message = [&](const torch::Tensor& sample, const torch::Tensor& text) -> std::string {
    try {
      (void)unet(sample, time, text);
    } catch (const c10::Error& error) {
      return error.msg();
    }
    return "";
  };
  EXPECT_THAT(message(torch::zeros({1, 3, 8, 8}), context), testing::HasSubstr("sample"));
  EXPECT_THAT(message(torch::zeros({1, 4, 8, 8}), torch::zeros({2, 77, 16})), testing::HasSubstr("encoder_hidden"));
  EXPECT_THAT(message(torch::zeros({1, 4, 8, 8}), torch::zeros({1, 77, 12})), testing::HasSubstr("attention context"));
}

TEST(UNet, TakesATimestepAsNumberOrOneEach) {
  torch::manual_seed(0);
  UNet2DConditionModel unet(test::small_unet());
  const torch::NoGradGuard no_grad;
  const torch::Tensor sample = torch::randn({2, 4, 8, 8}), context = torch::randn({2, 77, 16});
  const torch::Tensor one = unet(sample, torch::tensor(7), context);
  EXPECT_TRUE(torch::equal(one, unet(sample, torch::tensor({7, 7}), context)));
  EXPECT_FALSE(torch::allclose(one, unet(sample, torch::tensor({7, 8}), context)));
}

TEST(UNet, ACacheKeepsWhatTheTextGivesAndChangesNothing) {
  torch::manual_seed(0);
  UNet2DConditionModel unet(test::small_unet());
  const torch::NoGradGuard no_grad;
  const torch::Tensor sample = torch::randn({2, 4, 8, 8}), context = torch::randn({2, 77, 16});
  ContextCache cache;
  for (const int time : {900, 300}) {
    const torch::Tensor cached = unet(sample, torch::tensor(time), context, AddedConditions(), &cache);
    EXPECT_TRUE(torch::equal(cached, unet(sample, torch::tensor(time), context)));
  }
  // The second call read nothing of the text: another one in its place is not seen.
  const torch::Tensor unseen = unet(sample, torch::tensor(300), torch::randn({2, 77, 16}), AddedConditions(), &cache);
  EXPECT_TRUE(torch::equal(unseen, unet(sample, torch::tensor(300), context)));
}

// Output and gradient of the sample, with one choice other than ours.
torch::Tensor output_and_gradient(UNet2DConditionModel& unet, const CpuImplementation& implementation, int time) {
  const CpuImplementationScope scope(implementation);
  torch::manual_seed(1);
  const torch::Tensor sample = torch::randn({2, 4, 16, 16}).set_requires_grad(true),
                      context = torch::randn({2, 77, 16});
  const torch::Tensor y = unet(sample, torch::tensor(time), context);
  const torch::Tensor gradient = torch::autograd::grad({y.square().sum()}, {sample})[0];
  return torch::stack({y.detach(), gradient}).contiguous();
}

TEST(UNet, EachImplementationComputesTheSameInItsOwnWay) {
  torch::manual_seed(0);
  UNet2DConditionModel unet(test::small_unet());
  const CpuImplementation ours;
  const torch::Tensor expected = output_and_gradient(unet, ours, 300);
  EXPECT_TRUE(torch::equal(output_and_gradient(unet, ours, 300), expected));
  for (const CpuChoice& choice : kCpuChoices) {
    CpuImplementation other = ours;
    other.*choice.is_first = false;
    const torch::Tensor got = output_and_gradient(unet, other, 300);
    EXPECT_LE(test::relative_error(got, expected), 1e-5) << choice.name;
    EXPECT_GT(test::relative_error(output_and_gradient(unet, other, 301), expected), 1e-4) << choice.name;
    const std::string_view name = choice.name;  // what is of bfloat16, other heads or text has one way here
    // A library may add in the same order (matrix_product_test.cpp), and whole kernels with AVX2 do
    // (winograd_panels_test.cpp).
    if (name == "small_products" || name == "convolutions_3x3_kernels") continue;
    const bool has_one_way = (name == "products" && !can_multiply_by_onednn()) || name.ends_with("bfloat16") ||
                             name == "attention_heads" || name == "attention_causal";
    EXPECT_EQ(torch::equal(got, expected), has_one_way) << choice.name;
  }
}

}  // namespace
}  // namespace sdtune::model
