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
          draws.emplace_back(slot.step, slot.sample, slot.class_image, slot.image);
        }
        for (const BatchSlot& slot : plan.class_images(step, rank, round)) {
          draws.emplace_back(slot.step, slot.sample, slot.class_image, slot.image);
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

TEST(BatchPlan, EachImageOnceAnEpoch) {
  BatchPlan plan(1, 5, 7, {1, 1, 1});
  std::vector<std::vector<std::int64_t>> orders;
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
    std::vector<std::int64_t> order;
    for (std::uint64_t i = 0; i < 5; ++i) order.push_back(plan.photos(epoch * 5 + i, 0, 0).front().image);
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
  EXPECT_EQ(late.image, again.image);
  EXPECT_EQ(again.sample, 201u);
  EXPECT_EQ(again.key().step, 100u);
  EXPECT_DOUBLE_EQ(plan.epochs(10), 4.0);
}

TEST(BatchPlan, WithoutClassImages) {
  BatchPlan plan(1, 5, 0, {2, 1, 1});
  EXPECT_TRUE(plan.class_images(0, 0, 0).empty());
  EXPECT_THROW(BatchPlan(1, 0, 0, {1, 1, 1}), DataError);
  EXPECT_THROW(BatchPlan(1, 1, 0, {0, 1, 1}), DataError);
}

// Seven photos in three shapes, one of them shown three times an epoch.
EpochImages three_shapes() {
  return {{0, 1, 2, 3, 4, 5, 6, 6, 6}, {0, 0, 0, 0, 2, 2, 5, 5, 5}};
}

std::vector<std::int64_t> images_of(BatchPlan& plan, std::uint64_t step) {
  std::vector<std::int64_t> images;
  for (std::int64_t round = 0; round < plan.shape().rounds; ++round) {
    for (std::int64_t rank = 0; rank < plan.shape().ranks; ++rank) {
      for (const BatchSlot& slot : plan.photos(step, rank, round)) images.push_back(slot.image);
    }
  }
  return images;
}

TEST(BatchPlan, AStepsPhotosAreOfOneBucket) {
  BatchPlan plan(3, three_shapes(), {}, {2, 1, 2});
  const std::map<std::int64_t, int> bucket_of = {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 2}, {5, 2}, {6, 5}};
  std::map<std::int64_t, int> times;
  std::map<int, int> steps;
  for (std::uint64_t step = 0; step < 90; ++step) {
    const std::vector<std::int64_t> images = images_of(plan, step);
    ASSERT_EQ(images.size(), 4u);
    for (const std::int64_t image : images) {
      EXPECT_EQ(bucket_of.at(image), bucket_of.at(images[0]));
      ++times[image];
    }
    ++steps[bucket_of.at(images[0])];
  }
  // Ten cycles of nine steps: every entry as often as any other.
  EXPECT_EQ(steps, (std::map<int, int>{{0, 40}, {2, 20}, {5, 30}}));
  EXPECT_EQ(times, (std::map<std::int64_t, int>{{0, 40}, {1, 40}, {2, 40}, {3, 40}, {4, 40}, {5, 40}, {6, 120}}));
  EXPECT_DOUBLE_EQ(plan.epochs(9), 4.0);
}

TEST(BatchPlan, BucketsDoNotDependOnWhoComputes) {
  BatchPlan one(3, three_shapes(), {}, {4, 1, 1}), split(3, three_shapes(), {}, {1, 2, 2}),
      other(4, three_shapes(), {}, {4, 1, 1});
  int differ = 0;
  for (std::uint64_t step = 40; step-- > 0;) {  // backwards: no step needs those before it
    EXPECT_EQ(images_of(one, step), images_of(split, step));
    differ += images_of(one, step) != images_of(other, step);
  }
  EXPECT_GT(differ, 20) << "another seed must give another order";
}

TEST(BatchPlan, RepeatsCountInAnEpoch) {
  BatchPlan plan(1, EpochImages{{0, 0, 0, 1}, {0, 0, 0, 0}}, {}, {4, 1, 1});
  EXPECT_EQ(plan.epoch_size(), 4);
  for (std::uint64_t step = 0; step < 5; ++step) {
    std::vector<std::int64_t> images = images_of(plan, step);
    std::sort(images.begin(), images.end());
    EXPECT_EQ(images, (std::vector<std::int64_t>{0, 0, 0, 1}));
  }
}

}  // namespace
}  // namespace sdtune::train
