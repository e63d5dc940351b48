#include "train/portrait/pretrain/vae_stage.h"

#include <gtest/gtest.h>

#include "model/tokenizer/byte_pair_learner.h"
#include "tests/support/scratch_folder.h"
#include "train/portrait/pretrain/base_design.h"

namespace sdtune::train::pretrain {
namespace {

TEST(ReconstructionLoss, IsZeroForAPerfectCopyAndGrowsWithBlur) {
  const torch::Tensor images = torch::rand({2, 3, 8, 8}) * 2 - 1;
  EXPECT_EQ(reconstruction_loss(images, images).item<double>(), 0);
  EXPECT_GT(reconstruction_loss(images, torch::avg_pool2d(images, 3, 1, 1)).item<double>(), 0.1);
}

TEST(ReconstructionLoss, WeighsPixels) {
  const torch::Tensor images = torch::rand({2, 3, 8, 8}), decoded = torch::rand({2, 3, 8, 8});
  const torch::Tensor ones = torch::ones({2, 1, 8, 8});
  EXPECT_NEAR(reconstruction_loss(images, decoded, ones).item<double>(),
              reconstruction_loss(images, decoded).item<double>(), 1e-6);
  torch::Tensor upper = ones.clone();
  upper.slice(2, 4) = 0;
  torch::Tensor below = decoded.clone();
  below.slice(2, 4) = -3;
  EXPECT_EQ(reconstruction_loss(images, decoded, upper).item<double>(),
            reconstruction_loss(images, below, upper).item<double>());
  EXPECT_NE(reconstruction_loss(images, decoded).item<double>(), reconstruction_loss(images, below).item<double>());
}

TEST(DivergenceLoss, IsZeroForAStandardLatent) {
  const torch::Tensor zero = torch::zeros({2, 4, 2, 2});
  EXPECT_EQ(divergence_loss({zero, zero}).item<double>(), 0);
  EXPECT_NEAR(divergence_loss({zero + 3, zero}).item<double>(), 5e-4 * 4.5, 1e-7);
}

struct Autoencoder {
  test::ScratchFolder scratch;
  ImagePool pool;
  model::AutoencoderKL vae;

  Autoencoder()
      : pool(real_file_system(), {.folder = scratch.path(), .size = 64, .count = 16, .views = 4, .threads = 2}),
        vae(new_base(BaseDesign::named("nano"), learn_tokenizer({"a photo of a person"}, 530), 1).vae) {}

  VaeStage stage(double share, std::int64_t start = 0) {
    return VaeStage(vae, pool, {.batch_size = 2, .adversarial_share = share, .adversarial_start = start});
  }
};

// Name -> gradient of a step's loss.
std::map<std::string, torch::Tensor> gradients(VaeStage& stage, std::uint64_t step) {
  for (const NamedParameter& parameter : stage.parameters()) {
    parameter.weight.mutable_grad() = torch::Tensor();
    torch::Tensor(parameter.weight).set_requires_grad(true);
  }
  stage.loss(step).backward();
  std::map<std::string, torch::Tensor> found;
  for (const NamedParameter& parameter : stage.parameters()) found[parameter.name] = parameter.weight.grad();
  return found;
}

double distance(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

constexpr const char* kLast = "vae.decoder.conv_out.weight";

TEST(VaeStage, TheDiscriminatorCountsFromItsFirstStepOn) {
  Autoencoder autoencoder;
  VaeStage plain = autoencoder.stage(0), adversarial = autoencoder.stage(0.5, 3);
  EXPECT_EQ(adversarial.parameters().size(), plain.parameters().size() + 12);
  EXPECT_EQ(adversarial.loss(2).item<double>(), plain.loss(2).item<double>());
  EXPECT_NE(adversarial.loss(3).item<double>(), plain.loss(3).item<double>());
  EXPECT_FALSE(gradients(adversarial, 2).at("discriminator.conv_in.weight").defined());
  EXPECT_TRUE(gradients(adversarial, 3).at("discriminator.conv_out.weight").defined());
}

// The last layer's gradient is linear in that of the decoded image, so twice the share moves it twice as far.
TEST(VaeStage, TheShareScalesTheAdversarialGradient) {
  Autoencoder autoencoder;
  VaeStage plain = autoencoder.stage(0), some = autoencoder.stage(0.25), more = autoencoder.stage(0.5);
  for (VaeStage* stage : {&some, &more}) {  // the same discriminator, whose last layer starts at zero
    torch::NoGradGuard no_grad;
    for (const NamedParameter& parameter : stage->parameters()) {
      if (parameter.name == "discriminator.conv_out.weight")
        torch::Tensor(parameter.weight)
            .copy_(torch::linspace(-1, 1, parameter.weight.numel()).view_as(parameter.weight));
    }
  }
  const torch::Tensor without = gradients(plain, 0).at(kLast).clone();
  const torch::Tensor by_some = gradients(some, 0).at(kLast).clone() - without;
  const torch::Tensor by_more = gradients(more, 0).at(kLast).clone() - without;
  EXPECT_GT(by_some.norm().item<double>(), 1e-3 * without.norm().item<double>());
  EXPECT_LT(distance(by_more, 2 * by_some), 1e-3);
}

// The autoencoder's own term leaves the discriminator alone: its gradient is that of the hinge loss, scaled.
TEST(VaeStage, TheDiscriminatorLearnsFromItsOwnLossAlone) {
  Autoencoder autoencoder;
  VaeStage some = autoencoder.stage(0.25), more = autoencoder.stage(0.5);
  const torch::Tensor one = gradients(some, 0).at("discriminator.conv_out.weight").clone();
  const torch::Tensor other = gradients(more, 0).at("discriminator.conv_out.weight").clone();
  EXPECT_GT(one.norm().item<double>(), 0);
  EXPECT_EQ(distance(one, other), 0);
}

TEST(VaeStage, ThePerceptualTermCounts) {
  Autoencoder autoencoder;
  int calls = 0;
  const auto maps = [&](const torch::Tensor& images) {
    ++calls;
    return std::vector<torch::Tensor>{torch::avg_pool2d(images, 4), torch::avg_pool2d(images, 8)};
  };
  VaeStage plain = autoencoder.stage(0);
  VaeStage perceptual(autoencoder.vae, autoencoder.pool, {.batch_size = 2, .perceptual_weight = 0.5}, maps);
  EXPECT_GT(perceptual.loss(0).item<double>(), plain.loss(0).item<double>());
  EXPECT_EQ(calls, 2);
  EXPECT_GT(distance(gradients(perceptual, 0).at(kLast).clone(), gradients(plain, 0).at(kLast).clone()), 1e-3);
}

TEST(VaeStage, WithAFixedEncoderTrainsTheDecoderAlone) {
  Autoencoder autoencoder, other;
  VaeStage whole = autoencoder.stage(0);
  VaeStage decoder(autoencoder.vae, autoencoder.pool, {.batch_size = 2}, nullptr, other.vae);
  const std::map<std::string, torch::Tensor> of_all = gradients(whole, 0), found = gradients(decoder, 0);
  EXPECT_LT(found.size(), of_all.size());
  for (const auto& [name, gradient] : of_all) {
    const bool decodes = name.find("encoder") == std::string::npos && name.find("vae.quant_conv") == std::string::npos;
    ASSERT_EQ(found.count(name) == 1, decodes) << name;
    if (!decodes || !gradient.defined()) continue;
    EXPECT_LT((found.at(name) - gradient).norm().item<double>(), 1e-5 * (1 + gradient.norm().item<double>())) << name;
  }
  // The encoder is the other one, and the divergence of latents that stay counts nowhere.
  {
    const torch::NoGradGuard no_grad;
    for (const torch::Tensor& weight : other.vae->parameters()) torch::Tensor(weight).mul_(1.5);
  }
  EXPECT_GT(distance(gradients(decoder, 0).at(kLast), of_all.at(kLast)), 1e-3);
}

// A mark counts by its weight in a mean over the image; without marks it is the plain mean.
TEST(VaeStage, MarksCount) {
  test::ScratchFolder scratch;
  ImagePool pool(
      real_file_system(),
      {.folder = scratch.path(), .size = 64, .detail = portrait::Detail::k128, .count = 16, .views = 4, .threads = 2});
  Autoencoder autoencoder;
  VaeStage plain(autoencoder.vae, pool, {.batch_size = 16}),
      marks(autoencoder.vae, pool, {.batch_size = 16, .mark_weight = 30});
  VaeStage simple = autoencoder.stage(0);
  VaeStage none(autoencoder.vae, autoencoder.pool, {.batch_size = 2, .mark_weight = 30});
  EXPECT_NE(plain.loss(0).item<double>(), marks.loss(0).item<double>());
  EXPECT_NEAR(simple.loss(0).item<double>(), none.loss(0).item<double>(), 1e-6);
}

TEST(VaeStage, OfTheFirstImagesNeedsNoOthers) {
  Autoencoder autoencoder;
  ImagePool four(real_file_system(),
                 {.folder = autoencoder.scratch.path() / "four", .size = 64, .count = 4, .views = 4, .threads = 2});
  VaeStage first(autoencoder.vae, autoencoder.pool, {.batch_size = 2, .images = 4}),
      of_four(autoencoder.vae, four, {.batch_size = 2});
  VaeStage all(autoencoder.vae, autoencoder.pool, {.batch_size = 2});
  bool is_of_all = true;
  for (std::uint64_t step = 0; step < 4; ++step) {
    const double loss = first.loss(step).item<double>();
    EXPECT_EQ(loss, of_four.loss(step).item<double>());
    is_of_all = is_of_all && loss == all.loss(step).item<double>();
  }
  EXPECT_FALSE(is_of_all);
}

}  // namespace
}  // namespace sdtune::train::pretrain
