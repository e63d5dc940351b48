#include "train/portrait/classifier/landmark_erasure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "train/portrait/classifier/portrait_images.h"

namespace sdtune::train::classifier {
namespace {

using portrait::Landmark;

std::vector<portrait::Portrait> people(std::uint64_t count, portrait::Detail detail) {
  std::vector<portrait::Portrait> portraits;
  for (std::uint64_t i = 0; i < count; ++i) portraits.push_back(portrait::draw_portrait({i, i}, detail));
  return portraits;
}

class Erasure : public ::testing::Test {
 protected:
  const std::vector<portrait::Portrait> portraits_ = people(16, portrait::Detail::k128);
  const Labels labels_ = labels_of(portraits_);
  const torch::Tensor images_ = portrait_images(portraits_, 64, 2);
};

TEST_F(Erasure, IsAFunctionOfImageSeedAndStep) {
  const ErasedImages once = erase_landmarks(images_, labels_, 0.5, 3, 4);
  EXPECT_TRUE(once.images.equal(erase_landmarks(images_, labels_, 0.5, 3, 4).images));
  EXPECT_FALSE(once.images.equal(erase_landmarks(images_, labels_, 0.5, 3, 5).images));
  EXPECT_TRUE(images_.equal(portrait_images(portraits_, 64, 2)));  // the input stays
  EXPECT_TRUE(labels_.landmarks_seen.equal(labels_of(portraits_).landmarks_seen));
  EXPECT_TRUE(erase_landmarks(images_, labels_, 0.0, 3, 4).images.equal(images_));
}

// Where a landmark is said to be no longer seen the image is another, and elsewhere it is the same.
TEST_F(Erasure, ChangesWhatItSays) {
  const ErasedImages erased = erase_landmarks(images_, labels_, 1.0, 1, 0);
  std::array<int, 5> gone{};
  for (std::int64_t i = 0; i < images_.size(0); ++i) {
    for (std::int64_t k = 0; k < 5; ++k) {
      const auto pixel = [&](std::int64_t axis) {
        return std::clamp<std::int64_t>(
            static_cast<std::int64_t>((labels_.landmarks[i][k][axis].item<float>() + 1) * 32), 0, 63);
      };
      const auto around = [&](const torch::Tensor& x) {
        return x[i]
            .slice(1, std::max<std::int64_t>(0, pixel(1) - 1), pixel(1) + 2)
            .slice(2, pixel(0) - 1, pixel(0) + 2);
      };
      const bool is_gone =
          erased.labels.landmarks_seen[i][k].item<float>() < labels_.landmarks_seen[i][k].item<float>();
      const double change = (around(erased.images) - around(images_)).abs().max().item<double>();
      if (is_gone) {
        EXPECT_GT(change, 0.02) << i << ' ' << k;
      }
      EXPECT_FALSE(is_gone && k == static_cast<int>(Landmark::kNoseTip));
      gone[static_cast<std::size_t>(k)] += is_gone ? 1 : 0;
    }
    EXPECT_TRUE(erased.images[i].slice(1, 0, 4).equal(images_[i].slice(1, 0, 4)));  // over the head
    EXPECT_EQ(erased.labels.classes[i][static_cast<int>(Head::kExpression)].item<std::int64_t>(), kHidden);
    EXPECT_EQ(erased.labels.classes[i][static_cast<int>(Head::kPlace)].item<std::int64_t>(),
              labels_.classes[i][static_cast<int>(Head::kPlace)].item<std::int64_t>());
  }
  EXPECT_GT(gone[0] + gone[1], 0);
  EXPECT_GT(gone[3], 0);
}

// A mark under what was painted over can no longer be told; one beside it can.
TEST_F(Erasure, HidesMarksThatItCovers) {
  Labels labels = labels_;
  labels.classes = labels_.classes.clone();
  labels.mark_places = torch::full_like(labels_.mark_places, NAN);
  const auto head = [&](Labels& of, Head which) { return of.classes.select(1, static_cast<int>(which)); };
  const auto place = [&](portrait::Mark mark) {
    return labels.mark_places.select(1, static_cast<int>(mark)).select(1, 0);
  };
  for (const Head which : {Head::kMole, Head::kBirthmark, Head::kScar}) head(labels, which).fill_(1);
  place(portrait::Mark::kMole).copy_(labels.landmarks.select(1, static_cast<int>(Landmark::kLeftEye)));
  place(portrait::Mark::kBirthmark).fill_(-0.95);  // in a corner of the image
  ErasedImages erased = erase_landmarks(images_, labels, 1.0, 1, 0);
  const torch::Tensor is_gone = erased.labels.landmarks_seen.select(1, static_cast<int>(Landmark::kLeftEye))
                                    .lt(labels.landmarks_seen.select(1, static_cast<int>(Landmark::kLeftEye)));
  ASSERT_TRUE(is_gone.any().item<bool>());
  EXPECT_TRUE(head(erased.labels, Head::kMole).masked_select(is_gone).eq(kHidden).all().item<bool>());
  EXPECT_TRUE(head(erased.labels, Head::kMole).eq(1).any().item<bool>());
  EXPECT_TRUE(head(erased.labels, Head::kBirthmark).eq(1).all().item<bool>());
  EXPECT_TRUE(head(erased.labels, Head::kScar).eq(1).all().item<bool>());  // without a place
  EXPECT_TRUE(head(labels, Head::kMole).eq(1).all().item<bool>());         // the input stays
}

TEST(ErasureWithoutLandmarks, IsRefused) {
  const Labels labels = labels_of(people(2, portrait::Detail::k64));
  EXPECT_THROW(erase_landmarks(torch::zeros({2, 3, 64, 64}), labels, 0.5, 1, 1), std::invalid_argument);
  std::vector<portrait::Portrait> mixed = people(1, portrait::Detail::k64);
  mixed.push_back(people(1, portrait::Detail::k128).front());
  EXPECT_THROW(labels_of(mixed), std::invalid_argument);
}

}  // namespace
}  // namespace sdtune::train::classifier
