#include "train/data/class_images.h"

#include <set>

#include "model/base/error.h"
#include "tests/train/data/image_folder.h"

namespace sdtune::train {
namespace {

class ClassImages : public ImageFolder {
 protected:
  ClassImageSettings settings_{"a photo of a person", 100, "hash of the base", 8, {{"steps", 20}}};

  ClassImagePlan plan(std::int64_t count = 5) { return plan_class_images(folder_, count, settings_); }

  // Generates and returns the seeds that were used.
  std::set<std::uint64_t> draw(const ClassImagePlan& plan, RankShare share) {
    std::set<std::uint64_t> drawn;
    generate_class_images(real_file_system(), plan, settings_, share, [&](const std::vector<std::uint64_t>& seeds) {
      EXPECT_LE(static_cast<std::int64_t>(seeds.size()), share.batch);
      std::vector<Image> images;
      for (const std::uint64_t seed : seeds) {
        EXPECT_TRUE(drawn.insert(seed).second);
        images.push_back(test_image(8, 8, static_cast<std::uint32_t>(seed)));
      }
      return images;
    });
    return drawn;
  }
  void generate_all() {
    const ClassImagePlan todo = plan();
    draw(todo, {0, 1, 2});
    write_class_manifest(real_file_system(), folder_, todo, settings_);
  }
};

TEST_F(ClassImages, RanksShareAndNothingIsGeneratedTwice) {
  const ClassImagePlan todo = plan();
  EXPECT_EQ(todo.missing, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(draw(todo, {0, 2, 2}), (std::set<std::uint64_t>{100, 102, 104}));
  EXPECT_THROW(write_class_manifest(real_file_system(), folder_, todo, settings_), DataError);
  EXPECT_EQ(draw(todo, {1, 2, 2}), (std::set<std::uint64_t>{101, 103}));
  write_class_manifest(real_file_system(), folder_, todo, settings_);
  EXPECT_TRUE(plan().missing.empty()) << "all are reused when nothing changed";
  EXPECT_EQ(plan(7).missing, (std::vector<std::int64_t>{5, 6}));
}

TEST_F(ClassImages, InterruptedGenerationResumesWhereItStopped) {
  draw(plan(), {0, 2, 1});  // only the even ones, and no manifest
  EXPECT_EQ(plan().missing, (std::vector<std::int64_t>{1, 3}));
}

TEST_F(ClassImages, OtherSettingsAreOtherImages) {
  generate_all();
  const ClassImageSettings before = settings_;
  for (int change = 0; change < 5; ++change) {
    settings_ = before;
    if (change == 0) settings_.prompt = "a photo of a dog";
    if (change == 1) settings_.base_hash = "another";
    if (change == 2) settings_.seed = 101;
    if (change == 3) settings_.resolution = 16;
    if (change == 4) settings_.sampler["steps"] = 21;
    EXPECT_EQ(plan().missing.size(), 5u) << change;
  }
  settings_ = before;
  EXPECT_TRUE(plan().missing.empty());
}

TEST_F(ClassImages, DamagedAndForgedImagesAreGeneratedAgain) {
  generate_all();
  const ClassImagePlan whole = plan();
  write(whole.files[1].filename().string(), "not an image");
  image(whole.files[3].filename().string(), 999, 8, 8);  // an image, but not the one that the manifest lists
  EXPECT_EQ(plan().missing, (std::vector<std::int64_t>{1, 3}));
}

TEST_F(ClassImages, TheUsersOwnComeFirst) {
  image("my2.png", 2);
  image("my10.png", 3);
  const ClassImagePlan todo = plan();
  EXPECT_EQ(todo.own, 2);
  EXPECT_EQ(todo.files[0].filename(), "my2.png");
  EXPECT_EQ(todo.missing, (std::vector<std::int64_t>{2, 3, 4}));
  generate_all();
  EXPECT_TRUE(plan().missing.empty());
  EXPECT_EQ(plan(1).files.size(), 1u);
  write("my3.png", "broken");
  EXPECT_THROW(plan(), DataError);
}

TEST_F(ClassImages, TheUsersOwnMayBeNamedAlmostAsOurs) {
  image("class-woman-01.png", 2);
  image("class-00001.png", 3);
  EXPECT_EQ(plan().own, 2);
  generate_all();
  EXPECT_EQ(plan().own, 2);
}

TEST_F(ClassImages, AFolderOfOtherFilesHasNone) {
  write("README.txt", "what was generated goes here");
  EXPECT_EQ(plan().own, 0);
  EXPECT_EQ(plan().missing.size(), 5u);
}

}  // namespace
}  // namespace sdtune::train
