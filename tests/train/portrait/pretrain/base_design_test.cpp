#include "train/portrait/pretrain/base_design.h"

#include <gtest/gtest.h>

#include "model/base/error.h"
#include "model/tokenizer/byte_pair_learner.h"
#include "train/parameters/trainable_parameters.h"

namespace sdtune::train::pretrain {
namespace {

ClipTokenizer words() {
  return learn_tokenizer({"a photo of a person", "a person on a beach"}, 530);
}

TEST(BaseDesign, ThePortraitBaseHasAboutFifteenMillionParameters) {
  const model::ModelBundle bundle = new_base(BaseDesign::named("portrait"), words(), 0);
  const std::int64_t count = count_parameters(bundle);
  EXPECT_GT(count, 12'000'000);
  EXPECT_LT(count * 2, std::int64_t{32} << 20);  // bytes in float16
  EXPECT_EQ(bundle.unet->config().sample_size, 16);
  EXPECT_THROW(BaseDesign::named("huge"), ConfigError);
}

// At most one and a half times portrait-64's UNet, which has as many latent places: 60 MB in float16 hold four times
// it.
TEST(BaseDesign, Portrait128HasThePlacesOfPortrait64AndFitsInSixtyMegabytes) {
  const BaseDesign design = BaseDesign::named("portrait-128");
  const model::ModelBundle bundle = new_base(design, words(), 0);
  EXPECT_EQ(bundle.resolution(), 128);
  EXPECT_EQ(bundle.unet->config().sample_size, 16);
  EXPECT_EQ(bundle.vae->config().latent_channels, 12);
  EXPECT_EQ(design.detail, portrait::Detail::k128);
  EXPECT_LT(count_parameters(bundle) * 2, 60'000'000);
  const std::int64_t coarse = count_parameters(new_base(BaseDesign::named("portrait"), words(), 0));
  EXPECT_GT(count_parameters(bundle), coarse);
}

TEST(BaseDesign, WeightsAreAFunctionOfTheSeed) {
  const BaseDesign design = BaseDesign::named("nano");
  const auto weight = [&](std::uint64_t seed) { return new_base(design, words(), seed).unet->parameters().front(); };
  EXPECT_TRUE(weight(1).equal(weight(1)));
  EXPECT_FALSE(weight(1).equal(weight(2)));
}

TEST(BaseDesign, ANewNetworkPredictsNothing) {
  model::ModelBundle bundle = new_base(BaseDesign::named("nano"), words(), 0);
  const torch::Tensor context = torch::randn({2, 77, 32});
  const torch::Tensor out = bundle.unet->forward(torch::randn({2, 4, 16, 16}), torch::tensor({3, 800}), context);
  EXPECT_LT((out - bundle.unet->named_parameters()["conv_out.bias"].view({1, -1, 1, 1})).abs().max().item<float>(),
            1e-6);
}

}  // namespace
}  // namespace sdtune::train::pretrain
