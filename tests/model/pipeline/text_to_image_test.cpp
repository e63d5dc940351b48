#include "model/pipeline/text_to_image.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/base/error.h"
#include "model/core/tensor_memory.h"
#include "tests/support/tiny_bundle.h"

namespace sdtune::model {
namespace {

// A callback that counts how often it is copied: one that holds a Python object must not be without its lock.
struct CountedCallback {
  std::shared_ptr<int> copies = std::make_shared<int>(0);
  std::shared_ptr<int> calls = std::make_shared<int>(0);

  CountedCallback() = default;
  CountedCallback(const CountedCallback& other) : copies(other.copies), calls(other.calls) { ++*copies; }
  CountedCallback(CountedCallback&&) = default;
  void operator()(const SampleProgress&) const { ++*calls; }
};

SampleRequest second_pass_request() {
  SampleRequest request;
  request.prompts = {"a b"};
  request.steps = 2;
  request.hires = {2.0, 0, 1.0};
  return request;
}

TEST(TextToImage, ASecondPassDoesNotCopyTheCallback) {
  const test::ScratchFolder scratch;
  ModelBundle bundle = test::make_tiny_bundle(scratch, false);
  const CountedCallback counted;
  const SampleCallbacks callbacks{counted};
  const int before = *counted.copies;
  const std::unique_ptr<Scheduler> scheduler = make_sampler(bundle);
  ASSERT_TRUE(generate_latents(bundle, *scheduler, second_pass_request(), callbacks).defined());
  EXPECT_GE(*counted.calls, 4);
  EXPECT_EQ(*counted.copies, before);
}

TEST(TextToImage, AnInterruptGivesTheLatentsOfItsStep) {
  const test::ScratchFolder scratch;
  ModelBundle bundle = test::make_tiny_bundle(scratch, false);
  std::atomic<bool> interrupt{false};
  std::vector<torch::Tensor> seen;
  const auto on_step = [&](const SampleProgress& progress) {
    seen.push_back(progress.latents.clone());
    interrupt.store(true);
  };
  const std::unique_ptr<Scheduler> scheduler = make_sampler(bundle);
  const torch::Tensor latents =
      generate_latents(bundle, *scheduler, second_pass_request(), {on_step, nullptr, &interrupt});
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_TRUE(torch::equal(latents, seen.front()));
}

TEST(TextToImage, StepsOfASecondPassAreCheckedBeforeTheFirst) {
  const test::ScratchFolder scratch;
  ModelBundle bundle = test::make_tiny_bundle(scratch, false);
  const CountedCallback counted;
  const SampleCallbacks callbacks{counted};
  const std::unique_ptr<Scheduler> scheduler = make_sampler(bundle, "LCMScheduler", Json::object());
  SampleRequest request = second_pass_request();
  request.hires.steps = 60;  // LCM has 50
  EXPECT_THROW(generate_latents(bundle, *scheduler, request, callbacks), ConfigError);
  EXPECT_EQ(*counted.calls, 0);
  request.hires.steps = 3;
  ASSERT_TRUE(generate_latents(bundle, *scheduler, request, callbacks).defined());
  EXPECT_EQ(*counted.calls, 2 + 3);
}

// Of `steps`, which given timesteps replace, the share had been checked, and the second pass found none left.
TEST(TextToImage, TheShareOfASecondPassIsOneOfTheGivenTimesteps) {
  const test::ScratchFolder scratch;
  ModelBundle bundle = test::make_tiny_bundle(scratch, false);
  const CountedCallback counted;
  const SampleCallbacks callbacks{counted};
  const std::unique_ptr<Scheduler> scheduler = make_sampler(bundle, "EulerDiscreteScheduler", Json::object());
  SampleRequest request = second_pass_request();
  request.timesteps = {900, 400};
  request.steps = 50;
  request.hires.strength = 0.4;
  EXPECT_THROW(generate_latents(bundle, *scheduler, request, callbacks), ConfigError);
  EXPECT_EQ(*counted.calls, 0);
  request.steps = 1;
  request.hires.strength = 0.5;
  ASSERT_TRUE(generate_latents(bundle, *scheduler, request, callbacks).defined());
  EXPECT_EQ(*counted.calls, 2 + 1);
}

TEST(TextToImage, SizesAreThoseOfTheLatents) {
  const test::ScratchFolder scratch;
  ModelBundle bundle = test::make_tiny_bundle(scratch, false);
  SampleRequest request = second_pass_request();
  request.hires.scale = 1.3;
  request.width = 3 * bundle.vae_factor();
  const PixelSize first = first_pass_size(bundle, request), result = output_size(bundle, request);
  EXPECT_EQ(first.height, bundle.resolution());
  EXPECT_EQ(first.width, request.width);
  const std::unique_ptr<Scheduler> scheduler = make_sampler(bundle);
  const torch::Tensor latents = generate_latents(bundle, *scheduler, request);
  EXPECT_EQ(latents.size(2) * bundle.vae_factor(), result.height);
  EXPECT_EQ(latents.size(3) * bundle.vae_factor(), result.width);
}

// int(width * hr_scale) // opt_f of A1111, which no rounding to the nearest cell gives.
TEST(TextToImage, ASecondPassHasTheSizeOfA1111s) {
  const test::ScratchFolder scratch;
  const ModelBundle bundle = test::make_tiny_bundle(scratch, false);
  ASSERT_EQ(bundle.vae_factor(), 2);
  SampleRequest request = second_pass_request();
  const auto width = [&](std::int64_t first, double scale) {
    request.width = first;
    request.hires.scale = scale;
    return output_size(bundle, request).width;
  };
  EXPECT_EQ(width(6, 1.3), 6);       // 7 px
  EXPECT_EQ(width(512, 1.19), 608);  // 609 px
  EXPECT_EQ(width(640, 1.7), 1088);  // exact, though 1.7 is no float64 number
  EXPECT_EQ(width(512, 1.5), 768);
  EXPECT_EQ(width(10, 1), 10);
}

// Those of the UNet's loop, of sizes that the autoencoder never asks for.
TEST(TextToImage, LargeBlocksThatWaitAreGivenBackBeforeTheAutoencoder) {
  const test::ScratchFolder scratch;
  const TensorMemoryScope memory;
  if (!TensorMemoryScope::is_active()) GTEST_SKIP() << "under the address sanitizer nothing is kept";
  ModelBundle bundle = test::make_tiny_bundle(scratch, false);
  const torch::Tensor latents = torch::zeros({1, bundle.vae->config().latent_channels, 4, 4});
  constexpr std::size_t kOfLoop = std::size_t{200} << 20, kSmall = std::size_t{20} << 20;
  for (const std::size_t bytes : {kSmall, kOfLoop}) {
    release_tensor_memory();
    { const torch::Tensor freed = torch::empty({static_cast<std::int64_t>(bytes)}, torch::kUInt8); }
    ASSERT_GE(tensor_memory().kept, bytes);
    decode_latents(bundle, latents);
    EXPECT_EQ(tensor_memory().kept >= bytes, bytes == kSmall) << "a small base's serve its next image";
  }
}

}  // namespace
}  // namespace sdtune::model
