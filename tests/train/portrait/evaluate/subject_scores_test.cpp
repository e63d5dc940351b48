#include "train/portrait/evaluate/subject_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "tests/train/portrait/evaluate/oracle_reading.h"

namespace sdtune::train::evaluate {
namespace {

using test::oracle_subject;
using test::other_portraits;
using test::prompted;
using test::prompted_portraits;

constexpr std::uint64_t kScoredViews = 500;

// A person with hair and a beard, so that every attribute can be matched or missed.
std::uint64_t telling_subject() {
  for (std::uint64_t number = 0; number < portrait::kReservedCount; ++number) {
    const portrait::Identity who = portrait::draw_identity(portrait::kReservedSeeds + number);
    if (who.hair_style != portrait::HairStyle::kBald && who.facial_hair != portrait::FacialHair::kNone) return number;
  }
  throw std::logic_error("no such subject");
}

class SubjectScores : public ::testing::Test {
 protected:
  SubjectScores()
      : subject_(oracle_subject(telling_subject())),
        renders_(prompted(prompted_portraits(subject_.number, kScoredViews, 8))),
        others_(prompted(other_portraits(1000, 8))),
        anchors_(measure_anchors(subject_, renders_, others_.reading, 0.5)) {}

  double figure(const PromptedReading& images, const char* name) const {
    return score_subject(subject_, images, anchors_).find(name).value().value;
  }

  Subject subject_;
  PromptedReading renders_, others_;
  Anchors anchors_;
};

TEST_F(SubjectScores, NewRendersOfTheSubjectScoreFull) {
  const PromptedReading fresh = prompted(prompted_portraits(subject_.number, 9000, 4));
  EXPECT_NEAR(figure(fresh, kSubjectFidelity), 1.0, 0.03);
  for (const char* name :
       {kPromptFidelity, kAccepted, kAttributeMatch, kHairStyle, kHairColor, kFacialHair, kSkinTone}) {
    EXPECT_DOUBLE_EQ(figure(fresh, name), 1.0) << name;
  }
  EXPECT_LE(figure(fresh, kCopied), 0.06);
  EXPECT_LE(figure(fresh, kRepeatedContext), 0.2);
}

TEST_F(SubjectScores, OtherPeopleScoreNothingButTheirPrompts) {
  const PromptedReading others = prompted(other_portraits(70'000, 4));
  EXPECT_NEAR(figure(others, kSubjectFidelity), 0.0, 0.05);
  EXPECT_DOUBLE_EQ(figure(others, kAccepted), 0.0);
  EXPECT_LT(figure(others, kAttributeMatch), 0.5);
  EXPECT_DOUBLE_EQ(figure(others, kPromptFidelity), 1.0);
}

TEST_F(SubjectScores, ImagesOfOtherPromptsLosePromptFidelityAlone) {
  std::vector<portrait::Portrait> portraits = prompted_portraits(subject_.number, 9000, 4);
  for (portrait::Portrait& portrait : portraits) portrait.now = plain_prompt().context(portrait.seeds.image);
  const PromptedReading plain = prompted(portraits);
  EXPECT_LT(figure(plain, kPromptFidelity), 0.3);
  EXPECT_NEAR(figure(plain, kSubjectFidelity), 1.0, 0.03);
  EXPECT_DOUBLE_EQ(figure(plain, kAccepted), 1.0);
}

TEST_F(SubjectScores, OneWrongAttributeShowsAsThatOne) {
  std::vector<portrait::Portrait> portraits = prompted_portraits(subject_.number, 9000, 4);
  for (portrait::Portrait& portrait : portraits) portrait.who.facial_hair = portrait::FacialHair::kNone;
  EXPECT_DOUBLE_EQ(figure(prompted(portraits), kFacialHair), 0.0);
  EXPECT_DOUBLE_EQ(figure(prompted(portraits), kHairStyle), 1.0);
  EXPECT_DOUBLE_EQ(figure(prompted(portraits), kAttributeMatch), 0.75);
  for (portrait::Portrait& portrait : portraits) portrait.who.skin_tone = subject_.who.skin_tone < 0.5f ? 1.0f : 0.0f;
  EXPECT_DOUBLE_EQ(figure(prompted(portraits), kSkinTone), 0.0);
}

TEST_F(SubjectScores, AMeanOfSharesHasTheMeanOfTheirIntervals) {
  std::vector<portrait::Portrait> portraits = prompted_portraits(subject_.number, 9000, 4);
  for (portrait::Portrait& portrait : portraits) portrait.who.facial_hair = portrait::FacialHair::kNone;
  const Scores scores = score_subject(subject_, prompted(portraits), anchors_);
  double below = 0, squares = 0;  // of those that are 1; the one that is 0 can only be higher
  for (const char* name : {kHairStyle, kHairColor, kSkinTone}) {
    below += 1 - scores.find(name)->low;
    squares += std::pow(1 - scores.find(name)->low, 2);
  }
  const Estimate mean = scores.find(kAttributeMatch).value();
  EXPECT_NEAR(mean.low, 0.75 - below / 4, 1e-12);
  EXPECT_NEAR(mean.high, 0.75 + scores.find(kFacialHair)->high / 4, 1e-12);
  EXPECT_LT(mean.low, 0.75 - std::sqrt(squares) / 4 - 1e-3);  // of shares that do not depend on each other
  const double half_widths = (mean.high - mean.low) / 2;
  EXPECT_GT(std::abs(mean.high - (0.75 + half_widths)), 1e-3);  // the same width around the value is another interval
}

TEST_F(SubjectScores, PromptFidelityCountsTheImagesThatWereAskedAnything) {
  const PromptedReading fresh = prompted(prompted_portraits(subject_.number, 9000, 4));
  std::int64_t asked = 0;
  for (const EvalPrompt& prompt : eval_prompts()) asked += prompt.asked.empty() ? 0 : 4;
  EXPECT_LT(asked, static_cast<std::int64_t>(fresh.prompts.size()));
  EXPECT_EQ(prompt_fidelity(fresh).count, asked);
}

// Of a prompt that asks for two things the answers are read off one image.
TEST_F(SubjectScores, PromptFidelityIsNoSurerForAskingAnImageTwice) {
  double asked = 0, squares = 0;
  for (const EvalPrompt& prompt : eval_prompts()) {
    const auto things = static_cast<double>(prompt.asked.size());
    asked += 4 * things;
    squares += 4 * things * things;
  }
  const Estimate share = prompt_fidelity(prompted(prompted_portraits(subject_.number, 9000, 4)));
  const double independent = asked * asked / squares, deviations = 1.959964;
  EXPECT_LE(independent, static_cast<double>(share.count));
  EXPECT_DOUBLE_EQ(share.value, 1.0);
  EXPECT_NEAR(share.low, independent / (independent + deviations * deviations), 1e-9);  // Wilson's of all
}

// The thresholds are just above the first that must fail, which rounding to float32 would let pass.
TEST_F(SubjectScores, WhatIsAtTheThresholdOfTheFirstToFailFails) {
  const auto count = static_cast<double>(renders_.prompts.size());
  EXPECT_DOUBLE_EQ(figure(renders_, kCopied), std::floor(0.01 * count) / count);
  Anchors anchors = anchors_;
  anchors.accepted_from = std::nextafter(likeness_to(subject_, renders_.reading).max().item<double>(), 2.0);
  EXPECT_DOUBLE_EQ(score_subject(subject_, renders_, anchors).find(kAccepted)->value, 0.0);
}

// A model that gives its photos back whatever the prompt.
TEST_F(SubjectScores, CopiesOfThePhotosAreFoundOut) {
  PromptedReading copies = renders_;
  const torch::Tensor rows = torch::arange(renders_.reading.features.size(0)).remainder(5);
  copies.reading = {subject_.reading.probabilities.index_select(0, rows),
                    subject_.reading.numbers.index_select(0, rows),
                    subject_.reading.features.index_select(0, rows),
                    subject_.reading.embedding.index_select(0, rows),
                    {},
                    {}};
  EXPECT_DOUBLE_EQ(figure(copies, kCopied), 1.0);
  EXPECT_DOUBLE_EQ(figure(copies, kRepeatedContext), 1.0);
  EXPECT_DOUBLE_EQ(figure(copies, kAccepted), 1.0);  // likeness alone would praise them
  EXPECT_LT(figure(copies, kPromptFidelity), 0.5);
}

TEST_F(SubjectScores, ABaldSubjectHasNoHairColorToMatch) {
  subject_.who.hair_style = portrait::HairStyle::kBald;
  const Scores scores = score_subject(subject_, renders_, anchors_);
  EXPECT_FALSE(scores.find(kHairColor));
  EXPECT_TRUE(scores.find(kHairStyle));
  EXPECT_EQ(scores.find(kHairStyle)->value, 0.0);
}

TEST_F(SubjectScores, OnlyMarksThatTheSubjectHasAreAskedFor) {
  const auto has = [](const portrait::Identity& who) { return who.birthmark != 0 && who.earrings == 0; };
  std::uint64_t number = 0;
  while (!has(portrait::draw_identity(portrait::kReservedSeeds + number))) ++number;
  const Subject marked = oracle_subject(number);
  std::vector<portrait::Portrait> portraits = prompted_portraits(number, 9000, 4);
  Scores scores = score_subject(marked, prompted(portraits), anchors_);
  EXPECT_FALSE(scores.find(kEarrings));
  EXPECT_DOUBLE_EQ(scores.find(kBirthmark)->value, 1.0);
  EXPECT_DOUBLE_EQ(scores.find(kMarksMatch)->value, 1.0);
  for (portrait::Portrait& portrait : portraits) portrait.who.birthmark = 0;
  scores = score_subject(marked, prompted(portraits), anchors_);
  EXPECT_DOUBLE_EQ(scores.find(kBirthmark)->value, 0.0);
}

// A mark on the forehead under a hat can be seen in no image of that prompt, and is not missed there: heads of 128 px.
TEST_F(SubjectScores, AMarkThatIsHiddenIsNotMissed) {
  const auto has = [](const portrait::Identity& who) { return who.birthmark == 3; };
  std::uint64_t number = 0;
  while (!has(portrait::draw_identity(portrait::kReservedSeeds + number))) ++number;
  Subject marked = oracle_subject(number);
  marked.who = {};
  marked.who.hair_style = portrait::HairStyle::kBald;
  marked.who.birthmark = 3;
  const PromptedReading images = prompted(prompted_portraits(number, 9000, 4));
  const std::int64_t all = score_subject(marked, images, anchors_).find(kBirthmark).value().count;
  marked.detail = portrait::Detail::k128;
  const Estimate seen = score_subject(marked, images, anchors_).find(kBirthmark).value();
  EXPECT_LT(seen.count, all);
  EXPECT_GT(seen.count, all / 2);
  EXPECT_DOUBLE_EQ(seen.value, 1.0);
}

TEST_F(SubjectScores, SharpnessIsAgainstTheMeanOfRenders) {
  EXPECT_FALSE(score_subject(subject_, renders_, anchors_).find(std::string(kSharpness) + "fine"));
  PromptedReading images = renders_;
  images.face_energy = torch::tensor({{2.0, 4.0, 8.0}, {4.0, 4.0, 8.0}}, torch::kFloat64);
  Anchors anchors = anchors_;
  anchors.face_energy = torch::tensor({3.0, 8.0, 4.0}, torch::kFloat64);
  const Scores scores = score_subject(subject_, images, anchors);
  EXPECT_DOUBLE_EQ(scores.find(std::string(kSharpness) + "fine")->value, 1.0);
  EXPECT_DOUBLE_EQ(scores.find(std::string(kSharpness) + "middle")->value, 0.5);
  EXPECT_DOUBLE_EQ(scores.find(std::string(kSharpness) + "coarse")->value, 2.0);
}

TEST_F(SubjectScores, AClassifierThatSeparatesNoPeopleIsRefused) {
  EXPECT_THROW(measure_anchors(subject_, others_, renders_.reading, 0.5), WeightError);
}

}  // namespace
}  // namespace sdtune::train::evaluate
