#include "train/identity/text_likelihood.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/core/random.h"
#include "model/files/install_paths.h"
#include "model/pipeline/prompt_encoding.h"
#include "model/schedule/noise_schedule.h"
#include "tests/support/tiny_bundle.h"
#include "train/portrait/classifier/portrait_classifier.h"
#include "train/portrait/classifier/portrait_images.h"
#include "train/portrait/evaluate/eval_prompts.h"
#include "train/portrait/renderer/portrait_set.h"

namespace sdtune::train::evaluate {
namespace {

// The mean squared error of the noise that the UNet predicts, one text and one noise level at a time.
double error_by_hand(model::ModelBundle& bundle, const torch::Tensor& image, const std::string& text,
                     const std::vector<std::int64_t>& timesteps, std::uint64_t seed) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor latents = bundle.vae->encode(image).mean * bundle.vae->config().scaling_factor;
  const model::PromptEmbeds embeds = model::encode_prompts(bundle, model::tokenize_prompts(bundle, {text}));
  model::AddedConditions added;
  if (bundle.is_xl()) added = {embeds.pooled, torch::tensor({{16, 16, 0, 0, 16, 16}})};
  const model::NoiseSchedule schedule = model::NoiseSchedule::from_config(bundle.scheduler_config);
  double sum = 0;
  for (std::size_t level = 0; level < timesteps.size(); ++level) {
    const torch::Tensor noise =
        model::draw_normal({seed, model::Draw::kNoise, level, 0, false}, latents.sizes().slice(1)).unsqueeze(0);
    const double abar = schedule.alphas_cumprod[timesteps[level]].item<double>();
    const torch::Tensor noisy = std::sqrt(abar) * latents + std::sqrt(1 - abar) * noise;
    const torch::Tensor output = bundle.unet->forward(noisy, torch::tensor({timesteps[level]}), embeds.context, added);
    sum += (output - noise).square().mean().item<double>();
  }
  return sum / static_cast<double>(timesteps.size());
}

class TextLikelihood : public testing::TestWithParam<bool> {};

TEST_P(TextLikelihood, IsTheMeanErrorOfThePredictionsUnderEachText) {
  test::ScratchFolder scratch;
  torch::manual_seed(3);
  model::ModelBundle bundle = test::make_tiny_bundle(scratch, GetParam());
  const torch::Tensor images = torch::randn({2, 3, 16, 16}).clamp(-1, 1);
  const std::vector<std::string> texts = {"a", "b a", "b b b"};
  const torch::Tensor errors = text_errors(bundle, images, texts, {.noise_levels = 2, .seed = 9});
  ASSERT_EQ(errors.sizes(), torch::IntArrayRef({2, 3}));
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < texts.size(); ++j) {
      const double wanted = error_by_hand(bundle, images.narrow(0, i, 1), texts[j], {375, 625}, 9);
      EXPECT_NEAR(errors[i][static_cast<std::int64_t>(j)].item<double>(), wanted, 1e-5 * wanted);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(BothFamilies, TextLikelihood, testing::Values(false, true));

TEST(TextLikelihood, AStopLeavesTheRestUncompared) {
  test::ScratchFolder scratch;
  model::ModelBundle bundle = test::make_tiny_bundle(scratch, false);
  const std::atomic<bool> stop = true;
  const torch::Tensor errors = text_errors(bundle, torch::zeros({1, 3, 16, 16}), {"a", "b"}, {.stop = &stop});
  EXPECT_EQ(errors.sum().item<double>(), 0.0);
}

// Renders of other people that show the evaluation's prompts, read by the base that learnt from such renders.
TEST(TextLikelihood, TheBaseKnowsWhichPromptARenderShows) {
  std::vector<portrait::Portrait> portraits;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < readable_identity_prompts().size(); ++i) {
    const auto seeds = portrait::image_seeds(portrait::PortraitSet::kValidation, 700'000 + i, 0);
    const EvalPrompt prompt = readable_identity_prompts()[i];
    portraits.push_back({seeds, portrait::draw_identity(seeds.person), prompt.context(seeds.image), {}});
    texts.push_back(prompt.text("a person"));
  }
  model::ModelBundle base = model::load_bundle(find_shared_file("models/portrait-64"), torch::kFloat32, torch::kCPU);
  const torch::Tensor images = classifier::portrait_images(portraits, 64, 1);
  const torch::Tensor likeliest = text_errors(base, images, texts, {}).argmin(1);
  const auto right = likeliest.eq(torch::arange(std::ssize(texts))).sum().item<std::int64_t>();
  EXPECT_GE(right, std::ssize(texts) - 1) << likeliest;
}

}  // namespace
}  // namespace sdtune::train::evaluate
