#include "train/data/batch_plan.h"

#include "model/base/error.h"

namespace sdtune::train {

namespace {

BatchShape checked(BatchShape shape, const EpochImages& photos) {
  if (photos.size() < 1) throw DataError("images", "there is no photo to train on");
  if (shape.batch_size < 1 || shape.rounds < 1 || shape.ranks < 1) {
    throw DataError("train_batch_size", "batch, accumulation and ranks must be at least 1");
  }
  return shape;
}

}  // namespace

BatchPlan::BatchPlan(std::uint64_t seed, const EpochImages& photos, const EpochImages& class_images, BatchShape shape)
    : shape_(checked(shape, photos)),
      photos_(seed, model::Draw::kOrder, photos, shape.effective()),
      class_images_(seed, model::Draw::kClassOrder, class_images, shape.effective()) {}

BatchPlan::BatchPlan(std::uint64_t seed, std::int64_t photos, std::int64_t class_images, BatchShape shape)
    : BatchPlan(seed, EpochImages::once(photos), EpochImages::once(class_images), shape) {}

std::vector<BatchSlot> BatchPlan::photos(std::uint64_t step, std::int64_t rank, std::int64_t round) {
  return slots(step, rank, round, false);
}

std::vector<BatchSlot> BatchPlan::class_images(std::uint64_t step, std::int64_t rank, std::int64_t round) {
  return class_images_.epoch_size() == 0 ? std::vector<BatchSlot>{} : slots(step, rank, round, true);
}

double BatchPlan::epochs(std::uint64_t steps) const {
  return static_cast<double>(steps) * static_cast<double>(shape_.effective()) / static_cast<double>(epoch_size());
}

std::vector<BatchSlot> BatchPlan::slots(std::uint64_t step, std::int64_t rank, std::int64_t round, bool class_image) {
  ImageOrder& order = class_image ? class_images_ : photos_;
  const auto effective = static_cast<std::uint64_t>(shape_.effective());
  const std::int64_t first = (round * shape_.ranks + rank) * shape_.batch_size;
  std::vector<BatchSlot> result;
  for (std::int64_t place = first; place < first + shape_.batch_size; ++place) {
    const std::uint64_t sample = step * effective + static_cast<std::uint64_t>(place);
    result.push_back({step, sample, class_image, order.image(step, place)});
  }
  return result;
}

}  // namespace sdtune::train
