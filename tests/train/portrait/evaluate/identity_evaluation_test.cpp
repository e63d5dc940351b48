#include "train/identity/identity_evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "model/base/error.h"
#include "model/files/install_paths.h"
#include "train/portrait/classifier/portrait_images.h"
#include "train/portrait/evaluate/classifier_reader.h"
#include "train/portrait/evaluate/eval_prompts.h"
#include "train/portrait/evaluate/subject.h"
#include "train/portrait/renderer/portrait_set.h"

namespace sdtune::train::evaluate {
namespace {

constexpr std::uint64_t kNewViews = 500;
constexpr IdentityPlan kPlan{16, 8, 0};

classifier::PortraitClassifier installed_classifier() {
  return classifier::PortraitClassifier::load(find_shared_file("models/portrait-judge"), torch::kCPU);
}

std::unique_ptr<IdentityReader> classifier_reader() {
  return std::make_unique<ClassifierReader>(installed_classifier());
}

IdentitySubject reserved(std::uint64_t number) {
  return {"sks person", "a photo of a person", rendered_references({}, number, 5).unbind()};
}

// What a perfect model would generate for reserved person `shown`: the prompts' moments, and other people for the
// class.
torch::Tensor perfect_images(std::uint64_t shown) {
  std::vector<portrait::Portrait> portraits;
  for (std::uint64_t i = 0; i < 16; ++i) {
    const auto seeds = portrait::image_seeds(portrait::PortraitSet::kReserved, shown, kNewViews + i);
    const EvalPrompt prompt = readable_identity_prompts()[i % identity_prompts().size()];
    portraits.push_back({seeds, portrait::draw_identity(seeds.person), prompt.context(seeds.image), {}});
  }
  for (std::uint64_t i = 0; i < 8; ++i) {
    const auto seeds = portrait::image_seeds(portrait::PortraitSet::kValidation, 500'000 + i, 0);
    portraits.push_back({seeds, portrait::draw_identity(seeds.person), plain_prompt().context(seeds.image), {}});
  }
  return classifier::portrait_images(portraits, 64, 1);
}

TEST(IdentityEvaluator, RendersOfTheSubjectScoreOneAndOfAnotherPersonZero) {
  IdentityEvaluator probe(classifier_reader(), {reserved(3)}, kPlan);
  const IdentityScores own = probe.score(perfect_images(3)), other = probe.score(perfect_images(4));
  EXPECT_NEAR(own.identity, 1.0, 0.15);
  EXPECT_GE(own.accepted, 0.9);
  EXPECT_GE(own.prompt_fidelity, 0.9);
  EXPECT_LE(own.leak, 0.125);
  EXPECT_LT(other.identity, 0.3);
  EXPECT_EQ(other.accepted, 0.0);
  EXPECT_GE(other.prompt_fidelity, 0.9);
}

TEST(IdentityEvaluator, AClassThatBecameTheSubjectLeaks) {
  IdentityEvaluator probe(classifier_reader(), {reserved(3)}, kPlan);
  torch::Tensor drawn = perfect_images(3);
  drawn.narrow(0, 16, 8).copy_(drawn.narrow(0, 0, 8).clone());
  EXPECT_GE(probe.score(drawn).leak, 0.875);
}

TEST(IdentityEvaluator, SeveralSubjectsAreEachComparedWithTheirOwnPhotos) {
  IdentityEvaluator probe(classifier_reader(), {reserved(3), reserved(4)}, kPlan);
  ASSERT_EQ(probe.images().size(), 48u);
  const torch::Tensor third = perfect_images(3), fourth = perfect_images(4);
  EXPECT_GT(probe.score(torch::cat({third, fourth})).identity, 0.85);
  EXPECT_LT(probe.score(torch::cat({fourth, third})).identity, 0.3);
}

// Reads an image's first pixel as its embedding's angle, and knows no threshold.
class AngleReader : public IdentityReader {
 public:
  std::string name() const override { return "angles"; }
  torch::Tensor embed(const std::vector<torch::Tensor>& photos) override { return of(torch::stack(photos)); }
  torch::Tensor others(const std::string&) override { return of(torch::full({2, 3, 1, 1}, kOther)); }
  IdentityReading read(const torch::Tensor& drawn, const std::vector<IdentityImage>& images) override {
    const auto count = static_cast<std::int64_t>(images.size());
    return {of(drawn), torch::ones({count}, torch::kFloat64), torch::zeros({count}, torch::kFloat64)};
  }
  std::optional<double> threshold() const override { return std::nullopt; }

  static constexpr double kOther = 1.5;

 private:
  static torch::Tensor of(const torch::Tensor& images) {
    const torch::Tensor angle = images.select(1, 0).select(1, 0).select(1, 0);
    return torch::stack({angle.cos(), angle.sin()}, 1);
  }
};

// Photos at angle 0: their likeness to each other is 1, that of other people cos(1.5).
TEST(IdentityEvaluator, WithoutAThresholdHalfwayToOtherPeopleDecides) {
  const IdentitySubject subject{
      "sks person", "a photo of a person", {torch::zeros({3, 1, 1}), torch::zeros({3, 1, 1})}};
  IdentityEvaluator probe(std::make_unique<AngleReader>(), {subject}, {2, 2, 0});
  const double halfway = std::acos((1 + std::cos(AngleReader::kOther)) / 2);
  torch::Tensor drawn = torch::zeros({4, 3, 1, 1});
  drawn[0].fill_(halfway - 0.01);
  drawn[1].fill_(halfway + 0.01);
  drawn[2].fill_(AngleReader::kOther);
  const IdentityScores scores = probe.score(drawn);
  EXPECT_NEAR(scores.identity, 0.5, 0.01);
  EXPECT_EQ(scores.accepted, 0.5);
  EXPECT_EQ(scores.leak, 0.5);
  EXPECT_EQ(scores.prompt_fidelity, 0.0);
}

TEST(IdentityEvaluator, TheClassesWordsFollowOf) {
  EXPECT_EQ(class_words_of("a photo of a person"), "a person");
  EXPECT_EQ(class_words_of("dog"), "dog");
}

TEST(IdentityEvaluator, NoPromptOfItIsAmongTheReportedOnes) {
  for (const IdentityPrompt& probed : identity_prompts()) {
    for (const EvalPrompt& asked : eval_prompts()) EXPECT_NE(probed.text("sks person"), asked.text("sks person"));
  }
}

// The two of twelve people who are least alike: less than either is like another person.
TEST(IdentityEvaluator, PhotosOfDifferentPeopleCannotBeASubject) {
  std::vector<torch::Tensor> photos;
  for (std::uint64_t number = 0; number < 12; ++number) photos.push_back(rendered_references({}, number, 1));
  const torch::Tensor embeddings = installed_classifier().read(torch::cat(photos)).embedding;
  const auto least = torch::matmul(embeddings, embeddings.t()).argmin().item<std::int64_t>();
  IdentitySubject nobody = reserved(0);
  nobody.references = {photos[static_cast<std::size_t>(least / 12)][0],
                       photos[static_cast<std::size_t>(least % 12)][0]};
  EXPECT_THROW(IdentityEvaluator(classifier_reader(), {nobody}, kPlan), WeightError);
}

}  // namespace
}  // namespace sdtune::train::evaluate
