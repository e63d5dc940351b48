#include "train/portrait/pretrain/image_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

#include "model/base/error.h"
#include "model/core/image_tensor.h"
#include "tests/support/scratch_folder.h"
#include "train/portrait/classifier/portrait_images.h"
#include "train/portrait/pretrain/pool_order.h"
#include "train/portrait/pretrain/stage.h"

namespace sdtune::train::pretrain {
namespace {

PoolOptions small_pool(const std::filesystem::path& folder) {
  return {.folder = folder / "pictures", .size = 16, .count = 10, .views = 4, .threads = 2};
}

TEST(ImagePool, GivesTheRendersOfItsSeedsNowAndAfterReopening) {
  const test::ScratchFolder scratch;
  const std::vector<std::int64_t> indices = {7, 0, 9};
  torch::Tensor first;
  {
    ImagePool pool(real_file_system(), small_pool(scratch.path()));
    first = pool.images(indices);
    EXPECT_EQ(pool.portrait(7).seeds.person, 1u);
    EXPECT_EQ(pool.portrait(7).seeds.image, 7u);
    const torch::Tensor rendered =
        classifier::portrait_images({pool.portrait(7), pool.portrait(0), pool.portrait(9)}, 16, 1);
    EXPECT_LT((first - rendered).abs().max().item<float>(), 1e-6);
  }
  ImagePool again(real_file_system(), small_pool(scratch.path()));
  EXPECT_TRUE(again.images(indices).equal(first));
}

TEST(ImagePool, WaitsForAllUnlessASignalCame) {
  const test::ScratchFolder scratch;
  ImagePool pool(real_file_system(), small_pool(scratch.path()));
  StopFlag stop;
  constexpr auto kNever = std::chrono::steady_clock::time_point::max();
  EXPECT_TRUE(pool.wait_for_all(stop, kNever));
  EXPECT_TRUE(pool.is_ready({0, 9}));
  EXPECT_TRUE(model::normalized_pixels(pool.pixels({3, 4})).equal(pool.images({3, 4})));

  PoolOptions many = small_pool(scratch.path() / "many");
  many.size = 128;
  many.count = 100000;
  many.threads = 1;
  ImagePool unfinished(real_file_system(), many);
  EXPECT_FALSE(unfinished.is_ready({99999}));
  EXPECT_FALSE(unfinished.wait_for_all(stop, std::chrono::steady_clock::now()));  // and when its time is over
  unfinished.limit_waits(&stop, std::chrono::steady_clock::now());
  EXPECT_THROW(unfinished.images({99999}), WaitEnded);
  unfinished.limit_waits(&stop, kNever);
  stop.request(15);
  EXPECT_FALSE(unfinished.wait_for_all(stop, kNever));
  EXPECT_THROW(unfinished.pixels({99999}), WaitEnded);
}

TEST(ImagePool, RefusesAFolderOfOtherImages) {
  const test::ScratchFolder scratch;
  { ImagePool pool(real_file_system(), small_pool(scratch.path())); }
  PoolOptions other = small_pool(scratch.path());
  other.size = 32;
  EXPECT_THROW(ImagePool(real_file_system(), other), ConfigError);
  PoolOptions later = small_pool(scratch.path());
  later.first = 8;
  try {
    ImagePool(real_file_system(), later);
    FAIL() << "must be refused";
  } catch (const ConfigError& error) {
    EXPECT_NE(error.problems().front().what.find("first image (--first-image) (got 0; now 8)"), std::string::npos);
    EXPECT_EQ(error.problems().front().hint.find("give --first-image 0, remove "), 0u);
  }
}

TEST(PoolOrder, SeesEveryImageOnceAnEpochAndTheFirstShardFirst) {
  PoolOrder order(3, 100, 30);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> seen = order.images(epoch * 100, 100);
    if (epoch == 0) {
      EXPECT_LT(*std::max_element(seen.begin(), seen.begin() + 30), 30);
    }
    std::sort(seen.begin(), seen.end());
    std::vector<std::int64_t> all(100);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(seen, all);
  }
}

TEST(PoolOrder, DependsOnSeedAndEpochAlone) {
  PoolOrder one(3, 100, 30), two(3, 100, 30), other(4, 100, 30);
  const std::vector<std::int64_t> straight = one.images(250, 20);
  two.images(0, 5);
  EXPECT_EQ(two.images(250, 20), straight);
  EXPECT_NE(other.images(250, 20), straight);
  EXPECT_NE(one.images(150, 20), straight);
}

}  // namespace
}  // namespace sdtune::train::pretrain
