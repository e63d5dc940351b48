#include "model/pipeline/denoiser.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/small_unet.h"

namespace sdtune::model {
namespace {

UNetConfig small_xl() {
  UNetConfig config = test::small_unet();
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
