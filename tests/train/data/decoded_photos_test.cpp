#include "train/data/decoded_photos.h"

#include <ATen/Functions.h>

#include "tests/train/data/image_folder.h"
#include "train/data/latent_cache.h"

namespace sdtune::train {
namespace {

class DecodedPhotosTest : public ImageFolder {
 protected:
  void SetUp() override {
    ImageFolder::SetUp();
    image("a.png", 1, 19, 8);
    image("b.png", 2, 9, 13);
    options_.crop.resolution = 8;
  }
  // The photos that fit into `max_bytes`.
  std::shared_ptr<DecodedPhotos> keep(std::int64_t max_bytes = DecodedPhotos::kMaxBytes) {
    auto kept = std::make_shared<DecodedPhotos>(options_.crop, options_.filter, /*shows_faces=*/false, max_bytes);
    const PhotoVisitor visitor{
        .keep = [&kept](const Photo& photo, const Image& decoded) { kept->keep(photo, decoded); }};
    scan_photos(folder_, "a photo", false, visitor);
    return kept;
  }
  torch::Tensor latents(const DecodedPhotos* kept) {
    std::vector<ImageFile> files;
    for (const char* name : {"a.png", "b.png"}) {
      files.push_back({folder_ / name, std::nullopt, kept ? kept->find(folder_ / name) : nullptr});
    }
    LatentCache cache(options_, [](const torch::Tensor& images) { return model::Moments{images, images - 2.0}; });
    cache.load(files, {});
    return cache.latents({{0, 0, false, 0}, {0, 1, false, 1}});
  }

  LatentOptions options_;
};

TEST_F(DecodedPhotosTest, TakeThePlaceOfTheFiles) {
  for (const bool random : {false, true}) {
    options_.crop.random = random;
    const torch::Tensor from_files = latents(nullptr);
    const std::shared_ptr<DecodedPhotos> kept = keep();
    std::filesystem::rename(folder_ / "a.png", folder_ / "gone");
    EXPECT_TRUE(torch::equal(latents(kept.get()), from_files));
    EXPECT_THROW(latents(nullptr), DataError) << "without them the file is read";
    std::filesystem::rename(folder_ / "gone", folder_ / "a.png");
  }
}

TEST_F(DecodedPhotosTest, AreOfTheFilterThatIsAskedFor) {
  const torch::Tensor lanczos = latents(keep().get());
  options_.filter = model::Filter::kBilinear;
  EXPECT_FALSE(torch::allclose(latents(keep().get()), lanczos, 1e-3, 1e-3));
}

TEST_F(DecodedPhotosTest, TakeNoMoreMemoryThanAllowed) {
  constexpr std::int64_t kBytesOfA = 19 * 8 * 3;  // it already has the height of the crop
  const std::shared_ptr<DecodedPhotos> some = keep(kBytesOfA);
  EXPECT_EQ((some->find(folder_ / "a.png") != nullptr) + (some->find(folder_ / "b.png") != nullptr), 1);
  EXPECT_EQ(keep(0)->find(folder_ / "b.png"), nullptr);
}

}  // namespace
}  // namespace sdtune::train
