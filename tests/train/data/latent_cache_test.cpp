#include "train/data/latent_cache.h"

#include <ATen/Functions.h>

#include <limits>

#include "model/base/error.h"
#include "model/core/image_tensor.h"
#include "tests/train/data/image_folder.h"

namespace sdtune::train {
namespace {

constexpr std::int64_t kSide = 8;

// Stands for the VAE: the mean is the image at half size, the logarithm of the variance follows the blue channel.
model::Moments fake_encode(const torch::Tensor& images) {
  const torch::Tensor mean = at::avg_pool2d(images, {2, 2});
  return {mean, mean.slice(1, 2, 3).expand_as(mean).sub(2.0)};
}

class LatentCacheTest : public ImageFolder {
 protected:
  void SetUp() override {
    ImageFolder::SetUp();
    files_ = {{image("a.png", 1, 19, 8), {}}, {image("b.png", 2, 9, 13), {}}, {image("c.png", 3, 8, 8), {}}};
    options_.crop.resolution = kSide;
    options_.seed = 5;
    options_.scaling_factor = 0.5;
    options_.shift_factor = 0.25;
  }
  LatentCache cache(bool cached) {
    options_.cache = cached;
    LatentCache result(options_, [this](const torch::Tensor& images) {
      ++encodings_;
      return fake_encode(images);
    });
    result.load(files_, {files_[2]});
    return result;
  }

  LatentOptions options_;
  std::vector<ImageFile> files_;
  int encodings_ = 0;
  const std::vector<BatchSlot> slots_ = {{0, 0, false, 1}, {0, 1, false, 0}, {0, 1, true, 0}, {1, 2, false, 2}};
};

TEST_F(LatentCacheTest, CacheChangesNoNumber) {
  for (const bool flip : {false, true}) {
    options_.random_flip = flip;
    LatentCache kept = cache(true);
    const int after_load = encodings_;
    const torch::Tensor from_cache = kept.latents(slots_);
    EXPECT_EQ(encodings_, after_load);
    const torch::Tensor anew = cache(false).latents(slots_);
    EXPECT_EQ(from_cache.sizes(), (std::vector<std::int64_t>{4, 3, 4, 4}));
    EXPECT_TRUE(torch::allclose(from_cache, anew, 1e-6, 1e-6));
    ++options_.seed;
    EXPECT_FALSE(torch::allclose(from_cache, cache(true).latents(slots_), 1e-3, 1e-3)) << "another seed must differ";
  }
}

TEST_F(LatentCacheTest, LatentIsMeanPlusNoiseScaled) {
  LatentCache kept = cache(true);
  const BatchSlot slot{7, 30, false, 2};
  const torch::Tensor image = model::image_to_tensor(test_image(8, 8, 3)).unsqueeze(0);
  const model::Moments moments = fake_encode(image);
  const torch::Tensor noise = model::draw_normal({5, model::Draw::kLatent, 7, 30, false}, {3, 4, 4}).unsqueeze(0);
  const torch::Tensor expected = (moments.mean + (moments.logvar * 0.5).exp() * noise - 0.25) * 0.5;
  EXPECT_TRUE(torch::allclose(kept.latents({slot}), expected, 1e-5, 1e-6));
  EXPECT_FALSE(torch::allclose(kept.latents({{8, 30, false, 2}}), expected, 1e-2, 1e-2)) << "each step draws anew";
  EXPECT_FALSE(torch::allclose(kept.latents({{7, 30, true, 0}}), expected, 1e-2, 1e-2))
      << "class images are drawn anew";
}

TEST_F(LatentCacheTest, MemoryFormatChangesNoNumber) {
  options_.random_flip = true;
  for (const bool cached : {true, false}) {
    const torch::Tensor plain = cache(cached).latents(slots_);
    options_.memory_format = torch::MemoryFormat::ChannelsLast;
    const torch::Tensor laid_out = cache(cached).latents(slots_);
    EXPECT_TRUE(laid_out.is_contiguous(torch::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(cache(cached).latents({slots_[0]}).is_contiguous(torch::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(torch::equal(laid_out, plain));
    options_.memory_format = torch::MemoryFormat::Contiguous;
    EXPECT_FALSE(cache(cached).latents(slots_).is_contiguous(torch::MemoryFormat::ChannelsLast));
  }
}

// One image of c alone overflows in the VAE's format: a bright one of a T4's float16, say.
class OverflowTest : public LatentCacheTest {
 protected:
  LatentCache load(bool has_float32, bool helps, EncodedStore* store = nullptr) {
    EncodeAgain again;
    const auto spoiled = [](const torch::Tensor& images, bool spoils) {
      model::Moments moments = fake_encode(images);
      if (spoils && images[0].equal(model::image_to_tensor(test_image(8, 8, 3)))) {
        moments.logvar[0][0][0][0] = std::numeric_limits<float>::infinity();
      }
      return moments;
    };
    if (has_float32) {
      again.in_float32 = [=, this](const torch::Tensor& images) {
        ++in_float32_;
        return spoiled(images, !helps);
      };
    }
    again.warn = [this](const Problem& problem) { warnings_.push_back(problem.line()); };
    LatentCache result(
        options_, [=](const torch::Tensor& images) { return spoiled(images, true); }, store, again);
    result.load(files_, {files_[2]});
    return result;
  }
  std::string error_of(bool has_float32) {
    try {
      load(has_float32, false);
    } catch (const DataError& error) {
      return error.problems().front().line();
    }
    return "";
  }

  int in_float32_ = 0;
  std::vector<std::string> warnings_;
};

TEST_F(OverflowTest, IsEncodedInFloat32WithOneWarning) {
  LatentCache mended = load(true, true);
  EXPECT_EQ(in_float32_, 2);  // as a photo and as a class image, and no other
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("c.png: overflows in the autoencoder's number format"), std::string::npos)
      << warnings_[0];
  EXPECT_TRUE(mended.latents(slots_).equal(cache(true).latents(slots_)));
}

TEST_F(OverflowTest, IsRefusedWhereFloat32DoesNotHelp) {
  for (const bool has_float32 : {false, true}) {
    const std::string error = error_of(has_float32);
    EXPECT_NE(error.find("c.png: is encoded to numbers that are not finite"), std::string::npos) << error;
  }
}

TEST_F(OverflowTest, IsNotTakenFromAStoreEither) {
  const std::filesystem::path folder = folder_ / "cache";
  EncodedStore store(real_file_system(), folder, "encoder", true, [](const Problem&) {});
  load(true, true, &store);
  std::vector<std::string> keys;
  for (const auto& file : std::filesystem::directory_iterator(folder)) keys.push_back(file.path().stem().string());
  EXPECT_EQ(keys.size(), 3u);
  for (const std::string& key : keys) {
    model::NamedTensors tensors = *store.load(key);
    tensors[0].second = torch::full_like(tensors[0].second, std::numeric_limits<float>::quiet_NaN());
    store.save(key, tensors);
  }
  LatentCache again = load(true, true, &store);
  EXPECT_TRUE(again.latents(slots_).equal(cache(true).latents(slots_)));
}

TEST_F(LatentCacheTest, FlipsHalfOfTheSlots) {
  options_.random_flip = true;
  std::vector<BatchSlot> slots;
  for (std::uint64_t i = 0; i < 400; ++i) slots.push_back({i, i, false, 0});
  // Photo a is 19 x 8: its middle square lies at 5.5, rounded to 6, and so at 5 in the mirrored photo.
  const torch::Tensor left = cache(true).time_ids(slots).select(1, 3);
  const auto mirrored = left.eq(5).sum().item<std::int64_t>();
  EXPECT_EQ(mirrored + left.eq(6).sum().item<std::int64_t>(), 400);
  EXPECT_NEAR(static_cast<double>(mirrored), 200.0, 60.0);  // 6 standard deviations
}

TEST_F(LatentCacheTest, RandomCropReachesEveryPlaceAndIsNotCached) {
  options_.crop.random = true;
  LatentCache random = cache(true);
  EXPECT_FALSE(random.cached());
  EXPECT_NE(random.why_not_cached().find("center_crop"), std::string::npos);
  std::vector<BatchSlot> slots;
  for (std::uint64_t i = 0; i < 400; ++i) slots.push_back({i, i, false, 0});
  const torch::Tensor left = random.time_ids(slots).select(1, 3);
  EXPECT_EQ(left.min().item<float>(), 0.0f);
  EXPECT_EQ(left.max().item<float>(), 11.0f);
  const int before = encodings_;
  EXPECT_EQ(random.latents(slots_).sizes(), (std::vector<std::int64_t>{4, 3, 4, 4}));
  EXPECT_EQ(encodings_, before + 1);
}

TEST_F(LatentCacheTest, TimeIdsAreDiffusersOrder) {
  const LatentCache kept = cache(true);
  const torch::Tensor ids = kept.time_ids({{0, 0, false, 1}});
  // b: 9 x 13 (w x h) becomes 8 x 11; the square's top is 1.5, rounded to even.
  const torch::Tensor expected = torch::tensor({13.0f, 9.0f, 2.0f, 0.0f, 8.0f, 8.0f}).unsqueeze(0);
  EXPECT_TRUE(torch::equal(ids, expected)) << ids;
}

TEST_F(LatentCacheTest, BucketsKeepShapesAndTellThem) {
  options_.crop.buckets = model::BucketRule{kSide, 4, 16, 4, true};
  const LatentCache kept = cache(true);
  // a: 19 x 8 becomes 12 x 4; b, 9 x 13, and c, 8 x 8, become squares.
  EXPECT_EQ(kept.size_of(slots_[1]), (model::ImageSize{12, 4}));
  EXPECT_EQ(kept.size_of(slots_[0]), (model::ImageSize{8, 8}));
  EXPECT_EQ(kept.size_of(slots_[2]), (model::ImageSize{8, 8}));
  const EpochImages epoch = kept.photo_epoch({2, 1, 3});
  EXPECT_EQ(epoch.images, (std::vector<std::int64_t>{0, 0, 1, 2, 2, 2}));
  EXPECT_EQ(epoch.buckets, (std::vector<std::int64_t>{0, 0, 1, 1, 1, 1}));
  LatentCache again = cache(true);
  EXPECT_EQ(again.latents({slots_[1]}).sizes(), (std::vector<std::int64_t>{1, 3, 2, 6}));
  // 19 x 8 resized to 12 x 5, of which the upper four rows (0.5 rounds to even): height before width.
  const torch::Tensor expected = torch::tensor({8.0f, 19.0f, 0.0f, 0.0f, 4.0f, 12.0f}).unsqueeze(0);
  EXPECT_TRUE(torch::equal(again.time_ids({slots_[1]}), expected)) << again.time_ids({slots_[1]});
}

TEST_F(LatentCacheTest, CropShowsWhatItIsToldTo) {
  files_[0].shown = model::ImageBox{14, 2, 4, 4};
  const torch::Tensor ids = cache(true).time_ids({{0, 0, false, 0}});
  EXPECT_EQ(ids[0][3].item<float>(), 11.0f) << "as far to the right as the image reaches";
}

TEST_F(LatentCacheTest, CacheKeepsMomentsAndNoImages) {
  EXPECT_EQ(cache(true).memory_bytes(), 4 * 2 * 3 * 4 * 4 * 4);  // 4 images, mean and deviation of 3x4x4 floats
  EXPECT_GT(cache(false).memory_bytes(), 4 * 8 * 8 * 3 - 1);
}

TEST(ImageTensor, GoesThereAndBack) {
  const Image image = test_image(5, 3);
  const torch::Tensor tensor = model::image_to_tensor(image);
  EXPECT_EQ(tensor.sizes(), (std::vector<std::int64_t>{3, 3, 5}));
  EXPECT_FLOAT_EQ(tensor[1][0][2].item<float>(), static_cast<float>(image.rgb[7]) / 127.5f - 1.0f);
  EXPECT_EQ(model::tensor_to_image(tensor.add(1).div(2)).rgb, image.rgb);
}

}  // namespace
}  // namespace sdtune::train
