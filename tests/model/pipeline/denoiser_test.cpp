#include "model/pipeline/denoiser.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

namespace sdtune::model {
namespace {

UNetConfig small_xl() {
  UNetConfig config;
  config.block_out_channels = {32, 64};
  config.down_block_types = {"CrossAttnDownBlock2D", "DownBlock2D"};
  config.up_block_types = {"UpBlock2D", "CrossAttnUpBlock2D"};
  config.only_cross_attention = {false, false};
  config.layers_per_block = {1, 1};
  config.cross_attention_dim = {16, 16};
  config.transformer_layers_per_block = {{1}, {1}};
  config.num_attention_heads = {4, 4};
  config.norm_num_groups = 8;
  config.text_time = true;
  config.addition_time_embed_dim = 8;
  config.projection_class_embeddings_input_dim = 6 * 8 + 16;
  return config;
}

class DenoiserOnThreads : public testing::TestWithParam<int> {
 protected:
  DenoiserOnThreads() { at::set_num_threads(GetParam()); }
  ~DenoiserOnThreads() override { at::set_num_threads(before_); }

 private:
  int before_ = at::get_num_threads();
};

// Rows go through the network together or apart: five rows are shared unevenly, and eight threads have too few.
TEST_P(DenoiserOnThreads, PredictsWhatTheUNetDoesAtEveryStep) {
  torch::manual_seed(0);
  UNet2DConditionModel unet(small_xl());
  const torch::Tensor context = torch::randn({5, 77, 16});
  const AddedConditions added{torch::randn({5, 16}), torch::randn({5, 6})};
  Denoiser denoiser(unet, context, added);
  for (const int time : {900, 20}) {
    const torch::Tensor sample = torch::randn({5, 4, 8, 8}), timestep = torch::tensor(time);
    const torch::Tensor found = denoiser(sample, timestep);
    EXPECT_FALSE(found.requires_grad());
    const torch::NoGradGuard no_grad;
    const torch::Tensor expected = unet(sample, timestep, context, added);  // numbers of about 1
    EXPECT_LT((found - expected).abs().max().item<double>(), 1e-5) << time;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, DenoiserOnThreads, testing::Values(1, 2, 5, 8));

}  // namespace
}  // namespace sdtune::model
