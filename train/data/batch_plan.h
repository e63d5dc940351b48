// Which image each place of each batch holds: pure arithmetic of (seed, step, place), so ranks, accumulation and
// micro-batches only decide who computes what (docs/architecture.md, "One optimizer step").
#pragma once

#include <cstdint>
#include <vector>

#include "model/core/random.h"
#include "train/data/image_order.h"

namespace sdtune::train {

// One image of a batch.
struct BatchSlot {
  std::uint64_t step = 0;    // optimizer steps before this one
  std::uint64_t sample = 0;  // global sample index g = step * effective batch + j
  bool class_image = false;
  std::int64_t image = 0;  // index into the photos, or into the class images

  model::SampleKey key() const { return {step, sample, class_image}; }
};

struct BatchShape {
  std::int64_t batch_size = 1;  // train_batch_size: photos of one rank in one round
  std::int64_t rounds = 1;      // gradient_accumulation_steps
  std::int64_t ranks = 1;

  std::int64_t effective() const { return batch_size * rounds * ranks; }
};

// The slots of every batch. With class images, as many of them as photos are in each batch, in an order of their own.
// All photos of a step are of one bucket, and so are its class images (image_order.h).
class BatchPlan {
 public:
  // class_images empty: without prior preservation. Throws DataError when there is no photo or a number of `shape` is
  // below 1.
  BatchPlan(std::uint64_t seed, const EpochImages& photos, const EpochImages& class_images, BatchShape shape);
  // Photos and class images once each, all of one size.
  BatchPlan(std::uint64_t seed, std::int64_t photos, std::int64_t class_images, BatchShape shape);

  // The photos of one rank's round of accumulation, batch_size of them.
  std::vector<BatchSlot> photos(std::uint64_t step, std::int64_t rank, std::int64_t round);
  // The class images that go with them; empty without prior preservation.
  std::vector<BatchSlot> class_images(std::uint64_t step, std::int64_t rank, std::int64_t round);

  // Passes over the photos, repeats included, after that many steps.
  double epochs(std::uint64_t steps) const;
  // Photos of one epoch, repeats included.
  std::int64_t epoch_size() const { return photos_.epoch_size(); }
  const BatchShape& shape() const { return shape_; }

 private:
  std::vector<BatchSlot> slots(std::uint64_t step, std::int64_t rank, std::int64_t round, bool class_image);

  BatchShape shape_;
  ImageOrder photos_, class_images_;
};

}  // namespace sdtune::train
