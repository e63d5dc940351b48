#include "train/portrait/pretrain/mark_mask.h"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"
#include "train/portrait/detailed/landmarks.h"
#include "train/portrait/renderer/renderer.h"

namespace sdtune::train::pretrain {
namespace {

constexpr std::int64_t kSide = 64;
constexpr std::int64_t kImages = 32;

PoolOptions pool_of(const test::ScratchFolder& scratch, portrait::Detail detail) {
  return {.folder = scratch.path(), .size = 16, .detail = detail, .count = kImages, .views = 4, .threads = 2};
}

std::vector<std::int64_t> all_images() {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < kImages; ++i) indices.push_back(i);
  return indices;
}

bool is_within(const torch::Tensor& mask, const portrait::LandmarkPlace& place) {
  const auto pixel = [](float at) {
    return std::clamp(static_cast<std::int64_t>((at + 1) * kSide / 2), std::int64_t{0}, kSide - 1);
  };
  return mask[pixel(-place.y)][pixel(place.x)].item<float>() == 1;
}

TEST(MarkMask, CoversEveryMarkThatIsSeenAndLittleElse) {
  const test::ScratchFolder scratch;
  const ImagePool pool(real_file_system(), pool_of(scratch, portrait::Detail::k128));
  const torch::Tensor masks = mark_mask(pool, all_images(), kSide);
  ASSERT_EQ(masks.sizes().vec(), (std::vector<std::int64_t>{kImages, 1, kSide, kSide}));
  int marks = 0, without = 0;
  for (std::int64_t i = 0; i < kImages; ++i) {
    const portrait::Portrait portrait = pool.portrait(i);
    bool has_mark = false;
    for (std::size_t mark = 0; mark < portrait::kMarkCount; ++mark) {
      const auto places = portrait::mark_places(static_cast<portrait::Mark>(mark), portrait.who, portrait.now);
      if (!places) continue;
      for (const portrait::LandmarkPlace& place : *places) {
        if (!place.seen) continue;
        has_mark = true;
        EXPECT_TRUE(is_within(masks[i][0], place)) << "image " << i << ", mark " << mark;
      }
    }
    ++(has_mark ? marks : without);
    const double share = masks[i].mean().item<double>();
    EXPECT_EQ(share > 0, has_mark) << i;
    EXPECT_LT(share, 0.12) << i;
  }
  EXPECT_GT(marks, 4);
  EXPECT_GT(without, 4);
}

// What is drawn there differs from the same person without the mark, and outside of the mask nothing does.
TEST(MarkMask, HoldsWhatABirthmarkChanges) {
  const test::ScratchFolder scratch;
  const ImagePool pool(real_file_system(), pool_of(scratch, portrait::Detail::k128));
  int compared = 0;
  for (std::int64_t i = 0; i < kImages; i += 4) {
    portrait::Portrait with = pool.portrait(i);
    if (with.who.birthmark == 0) continue;
    if (!portrait::shows_mark(portrait::Mark::kBirthmark, with.who, with.now)) continue;
    portrait::Portrait without = with;
    without.who.birthmark = 0;
    const auto pixels = [](const portrait::Portrait& one) {
      const std::vector<std::uint8_t> rgb = portrait::render_batch({one}, kSide, 1);
      return torch::tensor(std::vector<int>(rgb.begin(), rgb.end())).view({kSide, kSide, 3});
    };
    const torch::Tensor changed = (pixels(with) - pixels(without)).abs().amax(2) > 8;
    const torch::Tensor outside = mark_mask(pool, {i}, kSide)[0][0] == 0;
    EXPECT_GT(changed.sum().item<std::int64_t>(), 2);
    EXPECT_EQ(changed.logical_and(outside).sum().item<std::int64_t>(), 0) << i;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST(MarkMask, IsEmptyForPeopleWithoutMarks) {
  const test::ScratchFolder scratch;
  const ImagePool pool(real_file_system(), pool_of(scratch, portrait::Detail::k64));
  EXPECT_EQ(mark_mask(pool, all_images(), kSide).sum().item<double>(), 0);
}

}  // namespace
}  // namespace sdtune::train::pretrain
