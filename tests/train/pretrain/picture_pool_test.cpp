#include "train/pretrain/picture_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "model/base/error.h"
#include "tests/support/scratch_folder.h"
#include "train/judge/portrait_pictures.h"
#include "train/pretrain/pool_order.h"

namespace sdtune::train::pretrain {
namespace {

PoolOptions small_pool(const std::filesystem::path& folder) {
  return {.folder = folder / "pictures", .size = 16, .count = 10, .views = 4, .threads = 2};
}

TEST(PicturePool, GivesTheRendersOfItsSeedsNowAndAfterReopening) {
  const test::ScratchFolder scratch;
  const std::vector<std::int64_t> indices = {7, 0, 9};
  torch::Tensor first;
  {
    PicturePool pool(real_file_system(), small_pool(scratch.path()));
    first = pool.pictures(indices);
    EXPECT_EQ(pool.portrait(7).seeds.person, 1u);
    EXPECT_EQ(pool.portrait(7).seeds.picture, 7u);
    const torch::Tensor rendered =
        judge::portrait_pictures({pool.portrait(7), pool.portrait(0), pool.portrait(9)}, 16, 1);
    EXPECT_LT((first - rendered).abs().max().item<float>(), 1e-6);
  }
  PicturePool again(real_file_system(), small_pool(scratch.path()));
  EXPECT_TRUE(again.pictures(indices).equal(first));
}

TEST(PicturePool, RefusesAFolderOfOtherPictures) {
  const test::ScratchFolder scratch;
  { PicturePool pool(real_file_system(), small_pool(scratch.path())); }
  PoolOptions other = small_pool(scratch.path());
  other.size = 32;
  EXPECT_THROW(PicturePool(real_file_system(), other), ConfigError);
}

TEST(PoolOrder, SeesEveryPictureOnceAnEpochAndTheFirstShardFirst) {
  PoolOrder order(3, 100, 30);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> seen = order.pictures(epoch * 100, 100);
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
  const std::vector<std::int64_t> straight = one.pictures(250, 20);
  two.pictures(0, 5);
  EXPECT_EQ(two.pictures(250, 20), straight);
  EXPECT_NE(other.pictures(250, 20), straight);
  EXPECT_NE(one.pictures(150, 20), straight);
}

}  // namespace
}  // namespace sdtune::train::pretrain
