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

// Tiles of one cell had no next one, and those of two cells, or of six, did not meet: the image had another size.
TEST(AutoencoderKL, IsNotTiledWhereTilesDoNotMeet) {
  torch::manual_seed(0);
  const torch::NoGradGuard no_grad;
  for (const std::int64_t sample_size : {2, 4, 8, 24, 30}) {
    VaeConfig config = small_vae();
    config.sample_size = sample_size;
    AutoencoderKL vae(config);
    const torch::Tensor latents = torch::randn({1, 4, 9, 3}), image = torch::rand({1, 3, 36, 12});
    const torch::Tensor decoded = vae->decode(latents), mean = vae->encode(image).mean;
    vae->set_tiling(true);
    EXPECT_TRUE(vae->decode(latents).equal(decoded)) << sample_size;
    EXPECT_TRUE(vae->encode(image).mean.equal(mean)) << sample_size;
  }
}

TEST(VaeTiling, NeedsLargerImagesAndTilesThatMeet) {
  EXPECT_TRUE(needs_tiles(8, 9, {8, 64}));
  EXPECT_TRUE(needs_tiles(72, 8, {64, 8}));
  EXPECT_FALSE(needs_tiles(8, 8, {8, 64}));
  for (const std::int64_t cells : {0, 1, 2, 3, 6}) EXPECT_FALSE(needs_tiles(100, 100, {cells, 8 * cells})) << cells;
  EXPECT_FALSE(needs_tiles(100, 100, {12, 100}));  // of 100 px, with a factor of 8
}

TEST(VaeTiling, LengthOfTilesCountsWhatTheyShareTwice) {
  EXPECT_EQ(length_of_tiles(48, 64), 48);
  EXPECT_EQ(length_of_tiles(64, 64), 64);
  EXPECT_EQ(length_of_tiles(65, 64), 64 + 17);  // from 48 on
  EXPECT_EQ(length_of_tiles(256, 64), 5 * 64 + 16);
}

}  // namespace
}  // namespace sdtune::model
