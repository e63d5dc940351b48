#include "train/portrait/pretrain/head_mask.h"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"
#include "train/portrait/scene/head_place.h"

namespace sdtune::train::pretrain {
namespace {

TEST(HeadMask, IsWhereTheImageShowsTheHead) {
  const test::ScratchFolder scratch;
  const ImagePool pool(real_file_system(),
                       {.folder = scratch.path(), .size = 64, .count = 16, .views = 4, .threads = 2});
  const std::vector<std::int64_t> indices = {0, 5, 11};
  const torch::Tensor weights = head_mask(pool, indices, 16);
  ASSERT_EQ(weights.sizes().vec(), (std::vector<std::int64_t>{3, 1, 16, 16}));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const portrait::HeadPlace head = portrait::head_place(pool.portrait(indices[i]).now);
    const torch::Tensor one = weights[static_cast<std::int64_t>(i)][0];
    const auto column = static_cast<std::int64_t>((head.x + 1) * 8), row = static_cast<std::int64_t>((1 - head.y) * 8);
    EXPECT_EQ(one[row][column].item<float>(), 1.0f);
    EXPECT_EQ(one[15][0].item<float>(), 0.0f);  // the lower left corner
    const double share = one.mean().item<double>();
    EXPECT_GT(share, 0.2);
    EXPECT_LT(share, 0.6);
  }
}

}  // namespace
}  // namespace sdtune::train::pretrain
