#include "train/data/epoch_contents.h"

#include <gmock/gmock.h>

namespace sdtune::train {
namespace {

using testing::ElementsAre;

std::vector<Photo> photos(const std::vector<std::pair<std::string, std::int64_t>>& list) {
  std::vector<Photo> result;
  for (const auto& [name, repeats] : list) {
    Photo photo;
    photo.name = name;
    photo.repeats = repeats;
    result.push_back(photo);
  }
  return result;
}

TEST(EpochContents, OneFolder) {
  const std::vector<Photo> five = photos({{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}});
  EXPECT_THAT(describe_epoch(five, 0, {2, 1, 1}), ElementsAre("one epoch is 5 photos, 2.5 steps of 2"));
  EXPECT_THAT(describe_epoch(five, 20, {2, 1, 1}),
              ElementsAre("one epoch is 5 photos, 2.5 steps of 2",
                          "each step adds 2 class images: an epoch shows 5 of 20, and 4 epochs show all of them"));
}

TEST(EpochContents, FoldersWithRepeats) {
  const std::vector<Photo> list = photos({{"10_sks person/a", 10}, {"10_sks person/b", 10}, {"2_x/c", 2}});
  EXPECT_THAT(describe_epoch(list, 11, {1, 2, 1}),
              ElementsAre("one epoch is 2 photos x 10 of 10_sks person, 1 photo x 2 of 2_x = 22 images, 11 steps of 2",
                          "each step adds 2 class images: an epoch shows all 11, each 2 times"));
}

TEST(EpochContents, Buckets) {
  EXPECT_EQ(describe_buckets({{512, 512}, {512, 512}}, 4), "");
  EXPECT_EQ(describe_buckets({{512, 512}, {448, 576}, {512, 512}}, 1),
            "buckets: 448x576 with 1 photo, 512x512 with 2 photos");
  EXPECT_THAT(describe_buckets({{512, 512}, {448, 576}}, 2), testing::HasSubstr("a step's 2 shows some of them twice"));
}

}  // namespace
}  // namespace sdtune::train
