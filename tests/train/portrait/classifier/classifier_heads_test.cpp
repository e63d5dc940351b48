#include "train/portrait/classifier/classifier_heads.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "train/portrait/classifier/classifier_labels.h"

namespace sdtune::train::classifier {
namespace {

using portrait::HairStyle;
using portrait::Hat;
using portrait::Place;
using portrait::Portrait;
using portrait::Style;

// A photo in which everything can be seen.
Portrait open_portrait() {
  Portrait portrait;
  portrait.who.hair_style = HairStyle::kShort;
  portrait.now.hat = Hat::kNone;
  portrait.now.place = Place::kWall;
  portrait.now.style = Style::kPhoto;
  return portrait;
}

std::size_t number_named(std::string_view name) {
  return static_cast<std::size_t>(std::find(kNumberNames.begin(), kNumberNames.end(), name) - kNumberNames.begin());
}

TEST(ClassifierHeads, LieSideBySideWithoutGaps) {
  std::int64_t column = 0;
  for (std::size_t i = 0; i < kHeadCount; ++i) {
    const auto head = static_cast<Head>(i);
    EXPECT_EQ(first_column(head), column) << head_info(head).name;
    EXPECT_GE(head_info(head).classes.size(), 2u);
    column += static_cast<std::int64_t>(head_info(head).classes.size());
  }
  EXPECT_EQ(column_count(), column);
  EXPECT_EQ(head_info(Head::kScar).name, "scar");  // the enum and the table end together
}

TEST(ClassifierHeads, SeeAllInAnOpenPhotoButTheColorOfNoHat) {
  const Portrait portrait = open_portrait();
  for (std::size_t i = 0; i < kHeadCount; ++i) {
    const auto head = static_cast<Head>(i);
    EXPECT_EQ(visible_class(head, portrait).has_value(), head != Head::kHatColor) << head_info(head).name;
  }
  Portrait detailed = portrait;
  detailed.now.detail = portrait::Detail::k128;
  for (std::size_t number = 0; number < kNumberNames.size(); ++number) {
    const bool is_coarse = static_cast<std::int64_t>(number) < number_count(portrait::Detail::k64);
    EXPECT_EQ(visible_number(number, portrait).has_value(), is_coarse) << kNumberNames[number];
    EXPECT_TRUE(visible_number(number, detailed).has_value()) << kNumberNames[number];
  }
}

TEST(ClassifierHeads, SeeNoColorsWithoutColor) {
  for (const Style style : {Style::kBlackWhite, Style::kSketch}) {
    Portrait portrait = open_portrait();
    portrait.now.hat = Hat::kCap;
    portrait.now.style = style;
    for (const Head head :
         {Head::kHatColor, Head::kClothesColor, Head::kWallColor, Head::kHairColor, Head::kStreak, Head::kEarrings}) {
      EXPECT_FALSE(visible_class(head, portrait)) << head_info(head).name;
    }
    EXPECT_EQ(visible_class(Head::kHat, portrait), static_cast<std::int64_t>(Hat::kCap));
    EXPECT_EQ(visible_number(kSkinTone, portrait).has_value(), style != Style::kSketch);
  }
  Portrait cartoon = open_portrait();
  cartoon.now.style = Style::kCartoon;
  EXPECT_TRUE(visible_class(Head::kClothesColor, cartoon));
}

TEST(ClassifierHeads, SeeNoHairStyleUnderAHatButItsColorBelow) {
  Portrait portrait = open_portrait();
  portrait.now.hat = Hat::kBeanie;
  EXPECT_FALSE(visible_class(Head::kHairStyle, portrait));
  EXPECT_FALSE(visible_class(Head::kStreak, portrait));
  EXPECT_FALSE(visible_number(number_named("hairline"), portrait));
  EXPECT_TRUE(visible_class(Head::kHairColor, portrait));
  EXPECT_TRUE(visible_class(Head::kHatColor, portrait));
  portrait.who.hair_style = HairStyle::kMohawk;
  EXPECT_FALSE(visible_class(Head::kHairColor, portrait));
}

TEST(ClassifierHeads, SeeNoWallElsewhereNoHairOnABaldHeadNoEarsUnderLongHair) {
  Portrait portrait = open_portrait();
  portrait.now.place = Place::kBeach;
  portrait.who.hair_style = HairStyle::kBald;
  EXPECT_FALSE(visible_class(Head::kWallColor, portrait));
  EXPECT_FALSE(visible_class(Head::kHairColor, portrait));
  EXPECT_FALSE(visible_number(number_named("hair_shade"), portrait));
  EXPECT_EQ(visible_class(Head::kHairStyle, portrait), 0);
  EXPECT_TRUE(visible_class(Head::kEarrings, portrait));
  portrait.who.hair_style = HairStyle::kLong;
  EXPECT_FALSE(visible_class(Head::kEarrings, portrait));
  EXPECT_FALSE(visible_number(number_named("ear_size"), portrait));
}

// Turned so far that a cheek is away, detailed people lose its mark; coarse ones keep their labels.
TEST(ClassifierHeads, SeeNoMarkThatIsTurnedAway) {
  Portrait portrait = open_portrait();
  portrait.now.light = {0, 0, 1};
  portrait.who.birthmark = portrait.who.mole = 1;
  portrait.who.scar = true;
  for (const Head head : {Head::kBirthmark, Head::kMole, Head::kScar}) {
    portrait.now.detail = portrait::Detail::k128;
    portrait.now.yaw = 0;
    EXPECT_TRUE(visible_class(head, portrait)) << head_info(head).name;
    int shown = 0;
    for (const float yaw : {-0.25f, 0.25f}) {
      portrait.now.detail = portrait::Detail::k128;
      portrait.now.yaw = yaw;
      shown += visible_class(head, portrait) ? 1 : 0;
      portrait.now.detail = portrait::Detail::k64;
      EXPECT_TRUE(visible_class(head, portrait));
    }
    EXPECT_EQ(shown, 1) << head_info(head).name;
  }
}

TEST(ClassifierLabels, PlaceLandmarksAsRowsGoDown) {
  Portrait portrait = open_portrait();
  EXPECT_EQ(labels_of({portrait}).landmarks.numel(), 0);
  portrait.now.detail = portrait::Detail::k128;
  const Labels labels = labels_of({portrait, portrait});
  ASSERT_EQ(labels.landmarks.sizes(), (torch::IntArrayRef{2, 5, 2}));
  ASSERT_EQ(labels.landmarks_seen.sizes(), (torch::IntArrayRef{2, 5}));
  const auto y = [&](portrait::Landmark of) { return labels.landmarks[1][static_cast<int>(of)][1].item<float>(); };
  EXPECT_LT(y(portrait::Landmark::kLeftEye), y(portrait::Landmark::kNoseTip));
  EXPECT_LT(y(portrait::Landmark::kNoseTip), y(portrait::Landmark::kLeftMouthCorner));
}

TEST(ClassifierLabels, PlaceOnlyMarksThatAreSeen) {
  Portrait portrait = open_portrait();
  portrait.who.birthmark = 1;  // on the image's left cheek
  portrait.who.scar = true;    // beside it
  EXPECT_EQ(labels_of({portrait}).mark_places.numel(), 0);
  portrait.now.detail = portrait::Detail::k128;
  const Labels labels = labels_of({portrait});
  ASSERT_EQ(labels.mark_places.sizes(), (torch::IntArrayRef{1, 4, 4, 2}));
  const auto places = [&](portrait::Mark mark) { return labels.mark_places[0][static_cast<int>(mark)]; };
  const auto middle = portrait::mark_places(portrait::Mark::kBirthmark, portrait.who, portrait.now)->front();
  EXPECT_LT(middle.x, 0);
  EXPECT_EQ(places(portrait::Mark::kBirthmark)[0][0].item<float>(), middle.x);
  EXPECT_EQ(places(portrait::Mark::kBirthmark)[0][1].item<float>(), -middle.y);  // rows go down
  EXPECT_FALSE(places(portrait::Mark::kScar).isnan().all().item<bool>());
  EXPECT_TRUE(places(portrait::Mark::kMole).isnan().all().item<bool>());  // has none
  const auto hidden_points = [&](float yaw) {
    portrait.now.yaw = yaw;
    return labels_of({portrait}).mark_places[0][static_cast<int>(portrait::Mark::kBirthmark)].isnan().sum().item<int>();
  };
  EXPECT_EQ(std::min(hidden_points(-0.2f), hidden_points(0.2f)), 0);
  EXPECT_EQ(std::max(hidden_points(-0.2f), hidden_points(0.2f)), 8);  // turned away
}

TEST(ClassifierLabels, HoldWhatIsVisibleAndCountPeopleAsTheyAppear) {
  std::vector<Portrait> portraits(4, open_portrait());
  portraits[1].now.style = Style::kSketch;
  portraits[0].seeds.person = portraits[2].seeds.person = 70;
  portraits[1].seeds.person = 5;
  portraits[3].seeds.person = 6;
  portraits[2].who.skin_tone = 0.25f;
  const Labels labels = labels_of(portraits);
  EXPECT_TRUE(labels.people.equal(torch::tensor({0, 1, 0, 2}, torch::kInt64)));
  EXPECT_EQ(labels.classes[0][static_cast<int>(Head::kHatColor)].item<std::int64_t>(), kHidden);
  EXPECT_EQ(labels.classes[1][static_cast<int>(Head::kClothesColor)].item<std::int64_t>(), kHidden);
  EXPECT_EQ(labels.classes[1][static_cast<int>(Head::kStyle)].item<std::int64_t>(), 2);
  EXPECT_TRUE(labels.numbers[1][static_cast<std::int64_t>(kSkinTone)].isnan().item<bool>());
  EXPECT_FLOAT_EQ(labels.numbers[2][static_cast<std::int64_t>(kSkinTone)].item<float>(), 0.25f);
}

}  // namespace
}  // namespace sdtune::train::classifier
