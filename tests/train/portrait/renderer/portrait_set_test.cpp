#include "train/portrait/renderer/portrait_set.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <vector>

namespace sdtune::train::portrait {
namespace {

constexpr PortraitSet kSets[] = {PortraitSet::kTraining, PortraitSet::kValidation, PortraitSet::kReserved};

TEST(PortraitSet, RangesOfPeopleAndImagesAreDisjoint) {
  // Seeds rise with the person's number, so the first and last image of a set bound all of it.
  std::uint64_t next_person = 0, next_image = 0;
  for (const PortraitSet set : kSets) {
    const ImageSeeds first = image_seeds(set, 0, 0);
    const ImageSeeds last = image_seeds(set, people_in(set) - 1, kViewsOfPerson - 1);
    EXPECT_GE(first.person, next_person);
    EXPECT_GE(first.image, next_image);
    EXPECT_EQ(last.person - first.person + 1, people_in(set));
    EXPECT_EQ(last.image - first.image + 1, people_in(set) * kViewsOfPerson);
    next_person = last.person + 1;
    next_image = last.image + 1;
  }
  EXPECT_LE(next_image, std::uint64_t{1} << 50);
}

TEST(PortraitSet, EveryImageHasASeedOfItsOwn) {
  std::set<std::uint64_t> images;
  for (const PortraitSet set : kSets) {
    for (std::uint64_t person = 0; person < 50; ++person) {
      for (const std::uint64_t view : std::vector<std::uint64_t>{0, 1, 2, kViewsOfPerson - 1}) {
        images.insert(image_seeds(set, person, view).image);
      }
    }
  }
  EXPECT_EQ(images.size(), 3u * 50u * 4u);
}

TEST(PortraitSet, KnowsNoPersonOrViewBeyondItsRange) {
  EXPECT_EQ(people_in(PortraitSet::kReserved), 50u);
  EXPECT_NO_THROW(image_seeds(PortraitSet::kReserved, 49, 0));
  EXPECT_THROW(image_seeds(PortraitSet::kReserved, 50, 0), std::invalid_argument);
  EXPECT_THROW(image_seeds(PortraitSet::kTraining, std::uint64_t{1} << 32, 0), std::invalid_argument);
  EXPECT_THROW(image_seeds(PortraitSet::kTraining, 0, kViewsOfPerson), std::invalid_argument);
}

}  // namespace
}  // namespace sdtune::train::portrait
