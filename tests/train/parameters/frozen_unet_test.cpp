#include "train/parameters/frozen_unet.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "model/files/install_paths.h"
#include "train/parameters/lora_parameters.h"
#include "train/parameters/trainable_parameters.h"

namespace sdtune::train {
namespace {

torch::Tensor predict(model::UNet2DConditionModel unet) {
  const torch::NoGradGuard no_grad;
  const model::UNetConfig& config = unet->config();
  const torch::TensorOptions options = unet->parameters().front().options().requires_grad(false);
  const torch::Tensor latents = torch::linspace(-1, 1, config.in_channels * 64, options).view({1, -1, 8, 8});
  const torch::Tensor context =
      torch::linspace(-1, 1, 77 * config.cross_attention_dim.front(), options).view({1, 77, -1});
  return unet->forward(latents, torch::tensor({500}), context);
}

void change(const std::vector<ModuleParameter>& trained) {
  const torch::NoGradGuard no_grad;
  for (const ModuleParameter& parameter : trained) torch::Tensor(parameter.weight).add_(0.01);
}

class FrozenUnet : public testing::TestWithParam<torch::Dtype> {
 protected:
  model::ModelBundle bundle_ = model::load_bundle(find_bundled_base(), GetParam(), torch::kCPU);
};

TEST_P(FrozenUnet, KeepsItsPredictionsAndSharesWhatIsNotTrained) {
  const std::vector<ModuleParameter> trained = trainable_parameters(bundle_, false, {"attn2.to_k", "conv_in"});
  freeze_all_but(bundle_, trained);
  const model::UNet2DConditionModel frozen = frozen_copy(bundle_.unet);
  const torch::Tensor before = predict(bundle_.unet);
  change(trained);
  EXPECT_TRUE(torch::equal(predict(frozen), before));
  EXPECT_FALSE(torch::equal(predict(bundle_.unet), before));
  const auto ours = bundle_.unet->named_parameters(), theirs = frozen->named_parameters();
  std::size_t shared = 0;
  for (const auto& weight : ours) {
    const torch::Tensor& copy = theirs[weight.key()];
    EXPECT_FALSE(copy.requires_grad()) << weight.key();
    EXPECT_NE(copy.is_alias_of(weight.value()), weight.value().requires_grad()) << weight.key();
    shared += copy.is_alias_of(weight.value()) ? 1 : 0;
  }
  EXPECT_EQ(shared, ours.size() - trained.size());
}

TEST_P(FrozenUnet, LeavesBranchesOfLoraOut) {
  const std::vector<ModuleParameter> trained =
      add_lora(bundle_, LoraOptions(), false, 0, std::make_shared<DropoutSamples>());
  freeze_all_but(bundle_, trained);
  const torch::Tensor before = predict(bundle_.unet);  // the branches add nothing at first
  const model::UNet2DConditionModel frozen = frozen_copy(bundle_.unet);
  change(trained);
  EXPECT_TRUE(torch::allclose(predict(frozen), before, 1e-5, 1e-5));
  EXPECT_FALSE(torch::allclose(predict(bundle_.unet), before, 1e-2, 1e-2));
  for (const torch::Tensor& weight : frozen->parameters()) EXPECT_FALSE(weight.requires_grad());
}

INSTANTIATE_TEST_SUITE_P(InDtypes, FrozenUnet, testing::Values(torch::kFloat32, torch::kBFloat16),
                         [](const auto& test) { return test.param == torch::kFloat32 ? "float32" : "bfloat16"; });

}  // namespace
}  // namespace sdtune::train
