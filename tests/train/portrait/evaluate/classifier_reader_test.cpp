#include "train/portrait/evaluate/classifier_reader.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "train/portrait/classifier/classifier_file.h"
#include "train/portrait/classifier/portrait_images.h"
#include "train/portrait/renderer/caption.h"
#include "train/portrait/renderer/portrait_set.h"

namespace sdtune::train::evaluate {
namespace {

constexpr std::int64_t kPeople = 24;

std::vector<portrait::Portrait> people(portrait::Detail detail) {
  std::vector<portrait::Portrait> portraits;
  for (std::uint64_t i = 0; i < kPeople; ++i) {
    const portrait::ImageSeeds seeds = portrait::image_seeds(portrait::PortraitSet::kValidation, 600'000 + i, 0);
    portraits.push_back(portrait::draw_portrait(seeds, detail));
  }
  return portraits;
}

// Of the first, how many are word for word those of the second.
std::int64_t equal_words(const std::vector<std::string>& first, const std::vector<std::string>& second) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < first.size(); ++i) count += first[i] == second[i] ? 1 : 0;
  return count;
}

TEST(ContextWords, NameWhatIsWornTheExpressionAndThePlaceAndNothingOfThePerson) {
  portrait::Context now;
  now.clothes = portrait::Clothes::kHoodie;
  now.clothes_color = portrait::Color::kOrange;
  now.hat = portrait::Hat::kTopHat;
  now.hat_color = portrait::Color::kBlue;
  now.glasses = portrait::Glasses::kRound;
  now.expression = portrait::Expression::kSmile;
  now.place = portrait::Place::kForest;
  const std::string words = portrait::context_words(now);
  EXPECT_TRUE(words.starts_with("wearing an orange hoodie, a blue top hat and round glasses, smiling, in ")) << words;
  now.expression = portrait::Expression::kNeutral;
  now.hat = portrait::Hat::kNone;
  now.glasses = portrait::Glasses::kNone;
  now.place = portrait::Place::kWall;
  now.wall_color = portrait::Color::kGreen;
  EXPECT_EQ(portrait::context_words(now).find("smiling"), std::string::npos);
  EXPECT_TRUE(portrait::context_words(now).starts_with("wearing an orange hoodie, "));
  EXPECT_NE(portrait::context_words(now).find(" a green "), std::string::npos);
  now.style = portrait::Style::kSketch;
  EXPECT_EQ(portrait::context_words(now), "");
}

TEST(ClassifierReader, DescribesRendersAsTheyWereMade) {
  const std::filesystem::path folder = classifier::find_classifier("", 128);
  ASSERT_FALSE(folder.empty());
  ClassifierReader reader(classifier::PortraitClassifier::load(folder, torch::kCPU));
  const std::vector<portrait::Portrait> portraits = people(portrait::Detail::k128);
  std::vector<std::string> made;
  for (const portrait::Portrait& one : portraits) made.push_back(portrait::context_words(one.now));
  const torch::Tensor images = classifier::portrait_images(portraits, 128, 1);
  std::vector<torch::Tensor> photos;
  for (std::int64_t i = 0; i < kPeople; ++i) photos.push_back(images[i]);
  EXPECT_GE(equal_words(reader.describe(photos), made), kPeople * 3 / 4);
  std::rotate(photos.begin(), photos.begin() + 1, photos.end());  // the mutant: each one's neighbour
  EXPECT_LE(equal_words(reader.describe(photos), made), kPeople / 4);
}

}  // namespace
}  // namespace sdtune::train::evaluate
