#include "train/data/photo_masks.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/train/data/image_folder.h"
#include "train/data/photo_folder.h"

namespace sdtune::train {
namespace {

constexpr std::int64_t kFactor = 2;

// Stands for the VAE: the mean is the red channel at half size, without variance, so latents show the crop itself.
model::Moments encode_grey(const torch::Tensor& images) {
  const torch::Tensor mean = at::avg_pool2d(images.slice(1, 0, 1), kFactor);
  return {mean, torch::full_like(mean, -std::numeric_limits<float>::infinity())};
}

Image grey_image(std::int64_t width, std::int64_t height, std::uint32_t seed) {
  Image image = test_image(width, height, seed);
  for (std::size_t i = 0; i < image.rgb.size(); i += 3) image.rgb[i + 1] = image.rgb[i + 2] = image.rgb[i];
  return image;
}

// A PNG of 8 x 8 px as Pillow writes it: white and opaque on the left half, white and transparent on the right.
constexpr char kWhiteOnTransparent[] =
    "\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x08\x00\x00\x00\x08\x08\x06\x00"
    "\x00\x00\xc4\x0f\xbe\x8b\x00\x00\x00\x19\x49\x44\x41\x54\x78\xda\x63\xfc\xff\xff\xff\x7f\x06\x54\xc0\x88\xcc"
    "\x61\x62\x20\x00\x86\x87\x02\x00\x1c\x62\x04\x0d\x31\xd8\xaf\xdd\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60"
    "\x82";

Image plain_image(std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
  Image image{8, 8, {}};
  for (int i = 0; i < 8 * 8; ++i) image.rgb.insert(image.rgb.end(), {red, green, blue});
  return image;
}

class PhotoMasksTest : public ImageFolder {
 protected:
  // A photo whose mask is the photo itself, so that its latents are its mask.
  void write_own_mask(const std::string& name, std::int64_t width, std::int64_t height, std::uint32_t seed) {
    const std::string png = model::encode_png(grey_image(width, height, seed));
    write(name + ".png", png);
    write(name + ".mask.png", png);
  }
  std::vector<Photo> photos() const { return scan_photos(folder_, "a photo", false).photos; }

  const torch::NoGradGuard no_grad_;
};

TEST_F(PhotoMasksTest, MayHaveTheirEndingInCapitals) {
  image("a.png", 1, 8, 6);
  image("b.png", 2, 8, 6);
  image("a.mask.PNG", 3, 8, 6);
  image("b.MASK.PNG", 4, 8, 6);
  const std::vector<Photo> found = photos();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(mask_file_hashes(found).size(), 2u);
}

TEST_F(PhotoMasksTest, FollowCropAndFlipOfTheirPhoto) {
  write_own_mask("a", 19, 8, 1);
  write_own_mask("b", 24, 16, 2);  // resized to 12 x 8
  image("c.png", 3, 8, 8);
  const std::vector<Photo> found = photos();
  ASSERT_EQ(found.size(), 3u);  // masks are no photos
  for (const bool random : {false, true}) {
    LatentOptions options;
    options.crop.resolution = 8;
    options.crop.random = random;
    options.random_flip = true;
    options.filter = model::Filter::kBilinear;
    options.scaling_factor = 1;
    LatentCache latents(options, encode_grey);
    std::vector<ImageFile> files;
    for (const Photo& photo : found) files.push_back({photo.path, {}});
    latents.load(files, {files.back()});
    const PhotoMasks masks(found, latents, kFactor);
    std::vector<BatchSlot> slots;
    for (std::uint64_t i = 0; i < 40; ++i) slots.push_back({i, i, false, static_cast<std::int64_t>(i % 2)});
    const torch::Tensor expected = latents.latents(slots).add(1.0).div(2.0);
    const torch::Tensor got = masks.of(slots);
    EXPECT_EQ(got.sizes(), (std::vector<std::int64_t>{40, 1, 4, 4}));
    EXPECT_TRUE(torch::allclose(got, expected, 1e-5, 1e-6)) << random;
    EXPECT_FALSE(torch::allclose(got.flip(3), expected, 1e-2, 1e-2)) << "not mirrored must show";
    EXPECT_TRUE(masks.of({{0, 0, false, 2}, {0, 0, true, 0}}).eq(1).all().item<bool>());
    EXPECT_EQ(masks.without(), std::vector<std::string>{"c.png"});
    EXPECT_EQ(mask_file_hashes(found).size(), 2u);
  }
}

TEST_F(PhotoMasksTest, AreGreyAndBlackWhereTransparent) {
  for (const char* name : {"a", "b", "c", "d"}) image(std::string(name) + ".png", 1, 8, 8);
  write("a.mask.png", std::string(kWhiteOnTransparent, sizeof(kWhiteOnTransparent) - 1));
  write("b.mask.png", model::encode_png(plain_image(255, 0, 0)));
  write("c.mask.png", model::encode_png(plain_image(255, 255, 255)));
  write("d.mask.png", model::encode_png(plain_image(0, 0, 0)));
  const std::vector<Photo> found = photos();
  EXPECT_TRUE(mask_problems(found).empty());
  LatentOptions options;
  options.crop.resolution = 8;
  LatentCache latents(options, encode_grey);
  std::vector<ImageFile> files;
  for (const Photo& photo : found) files.push_back({photo.path, {}});
  latents.load(files, {});
  const PhotoMasks masks(found, latents, kFactor);
  const torch::Tensor half = masks.of({{0, 0, false, 0}});
  EXPECT_TRUE(half.slice(3, 0, 2).gt(1 - 1e-6).all().item<bool>());
  EXPECT_TRUE(half.slice(3, 2).lt(1e-6).all().item<bool>()) << "white that is transparent";
  const torch::Tensor red = masks.of({{0, 0, false, 1}});
  EXPECT_TRUE(torch::allclose(red, torch::full_like(red, 76.0 / 255), 1e-5, 1e-6)) << "its grey, not its red";
  EXPECT_FALSE(torch::allclose(red, torch::full_like(red, 77.0 / 255), 1e-5, 1e-6)) << "one level more must show";
  ASSERT_EQ(masks.uniform().size(), 2u);
  EXPECT_EQ(masks.uniform()[0].where, "c.png");
  EXPECT_EQ(masks.uniform()[1].where, "d.png");
}

TEST_F(PhotoMasksTest, FaultsAreNamed) {
  image("a.png", 1, 8, 8);
  std::vector<Problem> problems = mask_problems(photos());
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].where, "masked_loss");
  image("a.mask.png", 2, 8, 6);
  problems = mask_problems(photos());
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].line().find("a.mask.png"), std::string::npos);
  EXPECT_NE(problems[0].line().find("got 8 x 6 px; allowed: 8 x 8 px"), std::string::npos) << problems[0].line();
  image("a.mask.png", 2, 8, 8);
  EXPECT_TRUE(mask_problems(photos()).empty());
  write("a.mask.png", "no image");
  EXPECT_EQ(mask_problems(photos()).size(), 1u);
}

}  // namespace
}  // namespace sdtune::train
