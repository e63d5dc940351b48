#include "train/identity/reference_photos.h"

#include <ATen/Functions.h>

#include "model/base/error.h"
#include "tests/train/data/image_folder.h"

namespace sdtune::train {
namespace {

class ReferencePhotosTest : public ImageFolder {
 protected:
  // The photos of the folder, kept by `references`.
  std::vector<Photo> keep(ReferencePhotos& references) {
    const PhotoVisitor visitor{
        .keep = [&](const Photo& photo, const Image& decoded) { references.keep(photo, decoded); }};
    return scan_photos(folder_, "a photo", false, visitor).photos;
  }
  // What two readings of the photos give, the second after their files are gone.
  void expect_the_same_without_files(std::optional<std::int64_t> side) {
    const ReferencePhotos from_files(side);
    ReferencePhotos kept(side);
    for (const Photo& photo : keep(kept)) {
      const torch::Tensor expected = from_files.read(photo);
      std::filesystem::remove(photo.path);
      EXPECT_TRUE(at::equal(kept.read(photo), expected)) << photo.name;
      EXPECT_THROW(from_files.read(photo), DataError);
    }
  }
};

TEST_F(ReferencePhotosTest, OfAClassifierTakeThePlaceOfTheFiles) {
  image("a.png", 1, 19, 8);
  image("b.png", 2, 9, 13);
  expect_the_same_without_files(8);
}

TEST_F(ReferencePhotosTest, OfANetworkTakeThePlaceOfTheFiles) {
  image("a.png", 1, 1030, 4);
  image("b.png", 2, 9, 13);
  expect_the_same_without_files(std::nullopt);
}

TEST_F(ReferencePhotosTest, HaveTheSizeThatTheirReaderTakes) {
  image("a.png", 1, 2048, 4);
  ReferencePhotos network(std::nullopt), classifier(2);
  const Photo photo = keep(network).front();
  keep(classifier);
  EXPECT_EQ(network.read(photo).sizes(), torch::IntArrayRef({3, 2, 1024}));
  EXPECT_EQ(classifier.read(photo).sizes(), torch::IntArrayRef({3, 2, 2}));
}

TEST_F(ReferencePhotosTest, TakeNoMoreMemoryThanAllowed) {
  image("a.png", 1, 8, 8);
  image("b.png", 2, 8, 8);
  ReferencePhotos one(8, /*max_bytes=*/2 * 3 * 8 * 8 - 1);
  std::size_t found = 0;
  for (const Photo& photo : keep(one)) {
    std::filesystem::remove(photo.path);
    try {
      one.read(photo);
      ++found;
    } catch (const DataError&) {
    }
  }
  EXPECT_EQ(found, 1U);
}

}  // namespace
}  // namespace sdtune::train
