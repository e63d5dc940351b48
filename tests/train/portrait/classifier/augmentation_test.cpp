#include "train/portrait/classifier/augmentation.h"

#include <gtest/gtest.h>

namespace sdtune::train::classifier {
namespace {

torch::Tensor some_images(std::int64_t count) {
  const torch::Tensor ramp = torch::linspace(-1.0, 1.0, 3 * 16 * 16).view({1, 3, 16, 16});
  return (ramp * torch::linspace(0.2, 1.0, count).view({-1, 1, 1, 1})).contiguous();
}

TEST(Augmentation, IsAFunctionOfImagesSeedAndStep) {
  const torch::Tensor images = some_images(12);
  const torch::Tensor once = augment(images, 3, 40, {});
  EXPECT_TRUE(once.equal(augment(images, 3, 40, {})));
  EXPECT_FALSE(once.equal(augment(images, 4, 40, {})));
  EXPECT_FALSE(once.equal(augment(images, 3, 41, {})));
  EXPECT_TRUE(images.equal(some_images(12)));  // the input stays
}

TEST(Augmentation, OfARowDoesNotDependOnTheOthers) {
  torch::Tensor images = some_images(12);
  const torch::Tensor row = augment(images, 3, 1, {})[7].clone();
  images.narrow(0, 0, 7).zero_();
  EXPECT_TRUE(augment(images, 3, 1, {})[7].equal(row));
}

TEST(Augmentation, StaysInRangeAndRecognizable) {
  const torch::Tensor images = some_images(64);
  const torch::Tensor changed = augment(images, 1, 2, {});
  EXPECT_LE(changed.abs().max().item<double>(), 1.0);
  const torch::Tensor distance = (changed - images).pow(2).mean({1, 2, 3}).sqrt();
  EXPECT_GT(distance.max().item<double>(), 0.05);
  EXPECT_LT(distance.max().item<double>(), 0.35);
}

TEST(Augmentation, SendsAboutAQuarterThroughTheVae) {
  std::int64_t sent = 0;
  const Reconstruct count = [&](const torch::Tensor& x) {
    sent += x.size(0);
    return torch::zeros_like(x);
  };
  const torch::Tensor images = some_images(16);
  for (std::uint64_t step = 0; step < 20; ++step) augment(images, 9, step, count);
  EXPECT_GT(sent, 0.18 * 320);
  EXPECT_LT(sent, 0.32 * 320);
  // What comes back is used: zeros stay near zero but for brightness and noise.
  const auto flat = [](const torch::Tensor& x) { return torch::zeros_like(x); };
  const torch::Tensor changed = augment(images, 9, 0, flat), plain = augment(images, 9, 0, {});
  EXPECT_FALSE(changed.equal(plain));
}

}  // namespace
}  // namespace sdtune::train::classifier
