#include "train/portrait/pretrain/prompt_curve.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sdtune::train::pretrain {
namespace {

std::vector<portrait::Portrait> people(std::uint64_t count) {
  std::vector<portrait::Portrait> list;
  for (std::uint64_t seed = 0; seed < count; ++seed) list.push_back(portrait::draw_portrait({seed, seed}));
  return list;
}

// A reading that is certain of what `shown` says, shifted by `shift` classes.
classifier::Reading reading_of(const std::vector<portrait::Portrait>& shown, std::int64_t shift) {
  classifier::Reading reading;
  reading.probabilities = torch::zeros({static_cast<std::int64_t>(shown.size()), classifier::column_count()});
  for (std::size_t h = 0; h < classifier::kHeadCount; ++h) {
    const auto head = static_cast<classifier::Head>(h);
    const auto classes = static_cast<std::int64_t>(classifier::head_info(head).classes.size());
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const std::int64_t column = (classifier::visible_class(head, shown[i]).value_or(0) + shift) % classes;
      reading.probabilities[static_cast<std::int64_t>(i)][classifier::first_column(head) + column] = 1;
    }
  }
  return reading;
}

TEST(PromptAccuracy, IsOneWhenTheClassifierReadsWhatWasAskedAndZeroWhenNot) {
  const std::vector<portrait::Portrait> prompted = people(40);
  const PromptAccuracy right = prompt_accuracy(prompted, reading_of(prompted, 0));
  EXPECT_DOUBLE_EQ(right.mean, 1.0);
  EXPECT_EQ(right.by_head.size(), 12u);  // those that captions have words for
  EXPECT_DOUBLE_EQ(prompt_accuracy(prompted, reading_of(prompted, 1)).mean, 0.0);
}

TEST(PromptAccuracy, CountsEachClassThatWasAskedFor) {
  const std::vector<portrait::Portrait> prompted = people(40);
  const PromptAccuracy right = prompt_accuracy(prompted, reading_of(prompted, 0));
  const auto& places = right.by_class.at("place");
  std::int64_t asked = 0;
  for (const auto& [name, count] : places) {
    EXPECT_EQ(count.asked, count.right) << name;
    asked += count.asked;
  }
  EXPECT_EQ(asked, 40);
  const auto beaches = std::count_if(prompted.begin(), prompted.end(), [](const portrait::Portrait& one) {
    return one.now.place == portrait::Place::kBeach;
  });
  EXPECT_EQ(places.at("beach").asked, beaches);
}

TEST(PromptedPeople, AreUnseenOnesWithAllTheirWords) {
  for (const portrait::Portrait& one : prompted_people(20, portrait::Detail::k64)) {
    EXPECT_GE(one.seeds.person, portrait::kValidationSeeds);
    EXPECT_NE(one.caption.find("person"), std::string::npos);
  }
}

}  // namespace
}  // namespace sdtune::train::pretrain
