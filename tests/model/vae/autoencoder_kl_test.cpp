#include "model/vae/autoencoder_kl.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "model/vae/vae_tiling.h"

namespace sdtune::model {
namespace {

VaeConfig small_vae() {
  VaeConfig config;
  config.block_out_channels = {16, 32, 32};
  config.norm_num_groups = 8;
  return config;
}

TEST(AutoencoderKL, ParametersHaveDiffusersNames) {
  const auto parameters = AutoencoderKL(small_vae())->named_parameters();
  for (const char* name :
       {"encoder.conv_in.weight", "encoder.down_blocks.0.resnets.0.norm1.weight",
        "encoder.down_blocks.1.downsamplers.0.conv.bias", "encoder.mid_block.attentions.0.group_norm.weight",
        "encoder.mid_block.attentions.0.to_q.bias", "encoder.mid_block.attentions.0.to_out.0.weight",
        "decoder.up_blocks.0.upsamplers.0.conv.weight", "decoder.up_blocks.2.resnets.1.conv2.weight",
        "decoder.conv_norm_out.bias", "quant_conv.weight", "post_quant_conv.bias"}) {
    EXPECT_TRUE(parameters.contains(name)) << name;
  }
}

TEST(AutoencoderKL, ScalesByItsFactorAndBoundsLogvar) {
  torch::manual_seed(0);
  AutoencoderKL vae(small_vae());
  const torch::NoGradGuard no_grad;
  const Moments moments = vae->encode(1e4 * torch::randn({1, 3, 16, 24}));
  EXPECT_EQ(moments.mean.sizes(), (std::vector<int64_t>{1, 4, 4, 6}));
  EXPECT_LE(moments.logvar.max().item<double>(), 20.0);
  EXPECT_GE(moments.logvar.min().item<double>(), -30.0);
  EXPECT_EQ(vae->decode(moments.mean).sizes(), (std::vector<int64_t>{1, 3, 16, 24}));
  EXPECT_THROW((void)vae->encode(torch::zeros({1, 3, 15, 16})), c10::Error);
}

TEST(VaeTiling, LengthOfTilesCountsWhatTheyShareTwice) {
  EXPECT_EQ(length_of_tiles(48, 64), 48);
  EXPECT_EQ(length_of_tiles(64, 64), 64);
  EXPECT_EQ(length_of_tiles(65, 64), 64 + 17);  // from 48 on
  EXPECT_EQ(length_of_tiles(256, 64), 5 * 64 + 16);
}

}  // namespace
}  // namespace sdtune::model
