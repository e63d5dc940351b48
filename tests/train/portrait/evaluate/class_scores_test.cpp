#include "train/portrait/evaluate/class_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/train/portrait/evaluate/oracle_reading.h"

namespace sdtune::train::evaluate {
namespace {

using test::oracle_reading;
using test::oracle_subject;
using test::other_portraits;
using test::prompted;
using test::prompted_portraits;

class ClassScores : public ::testing::Test {
 protected:
  ClassScores() : subject_(oracle_subject(3)), renders_(oracle_reading(plain(other_portraits(40'000, 12)))) {
    anchors_.accepted_from = 0.5;
  }

  // The same people as in a photo without anything asked.
  static std::vector<portrait::Portrait> plain(std::vector<portrait::Portrait> portraits) {
    for (portrait::Portrait& portrait : portraits) portrait.now = plain_prompt().context(portrait.seeds.image);
    return portraits;
  }

  Scores score(const std::vector<portrait::Portrait>& portraits) const {
    return score_class(subject_, {oracle_reading(plain(portraits)), prompted(portraits)}, renders_, anchors_);
  }

  Subject subject_;
  classifier::Reading renders_;
  Anchors anchors_;
};

TEST_F(ClassScores, OtherPeopleAreDiverseAndNotTheSubject) {
  const Scores scores = score(other_portraits(1000, 12));
  EXPECT_DOUBLE_EQ(scores.find(kClassFidelity)->value, 1.0);
  EXPECT_DOUBLE_EQ(scores.find(kLeak)->value, 0.0);
  EXPECT_GT(scores.find(kClassDiversity)->value, 8.5);  // of 3 + 3 + 2 + 2 bits
  EXPECT_LE(scores.find(kClassDiversity)->value, 10.0);
}

// A class that has become the subject.
TEST_F(ClassScores, TheSubjectEverywhereIsALeakWithoutDiversity) {
  const Scores others = score(other_portraits(1000, 12)), same = score(prompted_portraits(3, 100, 12));
  EXPECT_DOUBLE_EQ(same.find(kLeak)->value, 1.0);
  EXPECT_NEAR(same.find(kClassDiversity)->value, 0.0, 1e-9);
  EXPECT_GT(same.find(kFrechetDistance)->value, 1.2 * others.find(kFrechetDistance)->value);
}

TEST_F(ClassScores, AnImageJustBelowTheThresholdIsNoLeak) {
  const std::vector<portrait::Portrait> portraits = prompted_portraits(3, 100, 2);
  const torch::Tensor likeness = likeness_to(subject_, oracle_reading(plain(portraits)));
  anchors_.accepted_from = std::nextafter(likeness.max().item<double>(), 2.0);
  EXPECT_DOUBLE_EQ(score(portraits).find(kLeak)->value, 0.0);
}

TEST_F(ClassScores, DiversityCountsBitsOfRows) {
  const classifier::Reading reading = oracle_reading(plain(other_portraits(1000, 12)));
  EXPECT_NEAR(diversity(reading, torch::zeros({8}, torch::kInt64)), 0.0, 1e-9);
  std::vector<portrait::Portrait> two = plain(other_portraits(1000, 1));
  for (std::size_t i = 0; i < two.size(); ++i) {
    two[i].who = two.front().who;
    if (i % 2 == 0) two[i].who.skin_tone = 0.1f;
    if (i % 2 == 1) two[i].who.skin_tone = 0.9f;
  }
  EXPECT_NEAR(diversity(oracle_reading(two), torch::arange(14)), 1.0, 1e-9);  // one even choice of two
}

}  // namespace
}  // namespace sdtune::train::evaluate
