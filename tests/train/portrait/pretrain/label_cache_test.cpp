#include "train/portrait/pretrain/label_cache.h"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace sdtune::train::pretrain {
namespace {

using classifier::Labels;

void expect_same(const Labels& found, const Labels& wanted) {
  EXPECT_TRUE(found.classes.equal(wanted.classes));
  EXPECT_TRUE(torch::allclose(found.numbers, wanted.numbers, 0, 0, /*equal_nan=*/true));
  EXPECT_TRUE(found.landmarks.equal(wanted.landmarks));
  EXPECT_TRUE(found.landmarks_seen.equal(wanted.landmarks_seen));
  EXPECT_TRUE(found.people.equal(wanted.people));
}

// Twice, for the second time nothing is unknown; a later batch shares an image with the first one and repeats another.
TEST(LabelCache, SaysWhatTheRendererSays) {
  for (const portrait::Detail detail : {portrait::Detail::k64, portrait::Detail::k128}) {
    const test::ScratchFolder scratch;
    const ImagePool pool(
        real_file_system(),
        {.folder = scratch.path(), .size = 16, .detail = detail, .first = 400, .count = 32, .views = 4, .threads = 1});
    LabelCache cache(pool, 32);
    const std::vector<std::vector<std::int64_t>> batches = {{8, 9, 31, 0}, {8, 9, 31, 0}, {30, 9, 5, 5}};
    for (const std::vector<std::int64_t>& indices : batches) {
      std::vector<portrait::Portrait> portraits;
      for (const std::int64_t index : indices) portraits.push_back(pool.portrait(index));
      expect_same(cache.labels(indices), classifier::labels_of(portraits));
    }
  }
}

}  // namespace
}  // namespace sdtune::train::pretrain
