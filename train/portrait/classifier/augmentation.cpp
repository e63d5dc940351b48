#include "train/portrait/classifier/augmentation.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <vector>

#include "model/core/random.h"

namespace sdtune::train::classifier {
namespace {

constexpr double kReconstructedShare = 0.25;
constexpr double kNoise = 0.15;
constexpr double kBrightness = 0.10;
constexpr double kContrast = 0.12;

// One number an image and kind of change.
enum Slot : std::uint64_t { kReconstructSlot, kBlurSlot, kNoiseSlot, kBrightnessSlot, kContrastSlot, kSlots };

class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t step) : seed_(seed), step_(step) {}
  // [0, 1)
  double unit(std::int64_t image, Slot slot) const {
    return model::draw_uniform(
        {seed_, model::Draw::kDropout, step_, static_cast<std::uint64_t>(image) * kSlots + slot, false});
  }
  double symmetric(std::int64_t image, Slot slot) const { return 2.0 * unit(image, slot) - 1.0; }
  // 0 for half of the images, up to 1 for the others.
  double strength(std::int64_t image, Slot slot) const { return std::max(0.0, symmetric(image, slot)); }

 private:
  std::uint64_t seed_;
  std::uint64_t step_;
};

// [B, 1, 1, 1] on the images' device.
template <typename Value>
torch::Tensor column(const torch::Tensor& images, Value&& value) {
  torch::Tensor values = torch::empty({images.size(0), 1, 1, 1}, torch::kFloat32);
  auto* at = values.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < images.size(0); ++i) at[i] = static_cast<float>(value(i));
  return values.to(images.device());
}

torch::Tensor some_reconstructed(const torch::Tensor& images, const Draws& draws, const Reconstruct& reconstruct) {
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < images.size(0); ++i) {
    if (draws.unit(i, kReconstructSlot) < kReconstructedShare) chosen.push_back(i);
  }
  if (!reconstruct || chosen.empty()) return images;
  const torch::Tensor rows = torch::tensor(chosen, torch::kInt64).to(images.device());
  return images.index_copy(0, rows, reconstruct(images.index_select(0, rows)));
}

torch::Tensor blurred(torch::Tensor images, const torch::Tensor& strength) {
  for (int pass = 0; pass < 2; ++pass) {
    const torch::Tensor mean = torch::avg_pool2d(images, 3, 1, 1, /*ceil_mode=*/false, /*count_include_pad=*/false);
    images = torch::lerp(images, mean, strength);
  }
  return images;
}

torch::Tensor noisy(const torch::Tensor& images, const Draws& draws, std::uint64_t seed, std::uint64_t step) {
  std::vector<std::int64_t> chosen;
  std::vector<model::SampleKey> keys;
  for (std::int64_t i = 0; i < images.size(0); ++i) {
    if (draws.strength(i, kNoiseSlot) == 0.0) continue;
    chosen.push_back(i);
    keys.push_back({step, static_cast<std::uint64_t>(i), false});
  }
  if (chosen.empty()) return images;
  const torch::Tensor rows = torch::tensor(chosen, torch::kInt64).to(images.device());
  const torch::Tensor noise =
      model::draw_normal_batch(seed, model::Draw::kNoise, keys, images.sizes().slice(1), images.device());
  const torch::Tensor strength =
      column(images, [&](std::int64_t i) { return kNoise * draws.strength(i, kNoiseSlot); }).index_select(0, rows);
  return images.index_add(0, rows, noise * strength);
}

}  // namespace

torch::Tensor augment(const torch::Tensor& images, std::uint64_t seed, std::uint64_t step,
                      const Reconstruct& reconstruct) {
  const c10::AutoGradMode no_gradients(false);
  const Draws draws(seed, step);
  torch::Tensor x = some_reconstructed(images, draws, reconstruct);
  x = blurred(x, column(x, [&](std::int64_t i) { return draws.strength(i, kBlurSlot); }));
  x = noisy(x, draws, seed, step);
  const torch::Tensor contrast =
      column(x, [&](std::int64_t i) { return 1.0 + kContrast * draws.symmetric(i, kContrastSlot); });
  const torch::Tensor brightness =
      column(x, [&](std::int64_t i) { return kBrightness * draws.symmetric(i, kBrightnessSlot); });
  return x.mul(contrast).add_(brightness).clamp_(-1.0, 1.0);
}

}  // namespace sdtune::train::classifier
