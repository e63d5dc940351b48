#include "train/data/batch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "model/base/error.h"

namespace sdtune::train {
namespace {

using Draws = std::vector<std::tuple<std::uint64_t, std::uint64_t, bool, std::int64_t>>;

// All slots of some steps, in the order of their sample index.
Draws all_slots(BatchShape shape, std::uint64_t steps, std::uint64_t seed = 3) {
  BatchPlan plan(seed, 5, 7, shape);
  Draws draws;
  for (std::uint64_t step = 0; step < steps; ++step) {
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      for (std::int64_t round = 0; round < shape.rounds; ++round) {
        for (const BatchSlot& slot : plan.photos(step, rank, round)) {
          draws.emplace_back(slot.step, slot.sample, slot.class_image, slot.picture);
        }
        for (const BatchSlot& slot : plan.class_images(step, rank, round)) {
          draws.emplace_back(slot.step, slot.sample, slot.class_image, slot.picture);
        }
      }
    }
  }
  std::sort(draws.begin(), draws.end());
  return draws;
}

TEST(BatchPlan, RanksAndRoundsOnlyShareOut) {
  const Draws one = all_slots({4, 1, 1}, 20);
  EXPECT_EQ(one.size(), 160u);
  EXPECT_EQ(all_slots({1, 4, 1}, 20), one);
  EXPECT_EQ(all_slots({1, 1, 4}, 20), one);
  EXPECT_EQ(all_slots({1, 2, 2}, 20), one);
  EXPECT_NE(all_slots({4, 1, 1}, 20, 4), one) << "another seed must give another order";
  EXPECT_NE(all_slots({2, 1, 1}, 40), one) << "another batch is another run";
}

TEST(BatchPlan, EachPictureOnceAnEpoch) {
  BatchPlan plan(1, 5, 7, {1, 1, 1});
  std::vector<std::vector<std::int64_t>> orders;
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
    std::vector<std::int64_t> order;
    for (std::uint64_t i = 0; i < 5; ++i) order.push_back(plan.photos(epoch * 5 + i, 0, 0).front().picture);
    std::vector<std::int64_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
    orders.push_back(order);
  }
  EXPECT_GT(std::count_if(orders.begin(), orders.end(), [&](const auto& order) { return order != orders[0]; }), 4);
}

TEST(BatchPlan, AskingAgainGivesTheSame) {
  BatchPlan plan(1, 5, 7, {2, 1, 1});
  const BatchSlot late = plan.photos(100, 0, 0)[1];
  plan.photos(0, 0, 0);
  const BatchSlot again = plan.photos(100, 0, 0)[1];
  EXPECT_EQ(late.picture, again.picture);
  EXPECT_EQ(again.sample, 201u);
  EXPECT_EQ(again.key().step, 100u);
  EXPECT_DOUBLE_EQ(plan.epochs(10), 4.0);
}

TEST(BatchPlan, WithoutClassPictures) {
  BatchPlan plan(1, 5, 0, {2, 1, 1});
  EXPECT_TRUE(plan.class_images(0, 0, 0).empty());
  EXPECT_THROW(BatchPlan(1, 0, 0, {1, 1, 1}), DataError);
  EXPECT_THROW(BatchPlan(1, 1, 0, {0, 1, 1}), DataError);
}

}  // namespace
}  // namespace sdtune::train
