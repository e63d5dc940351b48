#include "train/data/batch_plan.h"

#include "model/base/error.h"

namespace sdtune::train {

BatchPlan::BatchPlan(std::uint64_t seed, std::int64_t photos, std::int64_t class_images, BatchShape shape)
    : seed_(seed), photos_(photos), class_images_(class_images), shape_(shape) {
  if (photos < 1 || class_images < 0) throw DataError("images", "there is no photo to train on");
  if (shape.batch_size < 1 || shape.rounds < 1 || shape.ranks < 1) {
    throw DataError("train_batch_size", "batch, accumulation and ranks must be at least 1");
  }
}

std::vector<BatchSlot> BatchPlan::photos(std::uint64_t step, std::int64_t rank, std::int64_t round) {
  return slots(step, rank, round, false);
}

std::vector<BatchSlot> BatchPlan::class_images(std::uint64_t step, std::int64_t rank, std::int64_t round) {
  return class_images_ == 0 ? std::vector<BatchSlot>{} : slots(step, rank, round, true);
}

double BatchPlan::epochs(std::uint64_t steps) const {
  return static_cast<double>(steps) * static_cast<double>(shape_.effective()) / static_cast<double>(photos_);
}

std::vector<BatchSlot> BatchPlan::slots(std::uint64_t step, std::int64_t rank, std::int64_t round, bool class_image) {
  const auto effective = static_cast<std::uint64_t>(shape_.effective());
  const auto first = static_cast<std::uint64_t>((round * shape_.ranks + rank) * shape_.batch_size);
  std::vector<BatchSlot> result;
  for (std::int64_t i = 0; i < shape_.batch_size; ++i) {
    const std::uint64_t sample = step * effective + first + static_cast<std::uint64_t>(i);
    result.push_back({step, sample, class_image, picture(sample, class_image)});
  }
  return result;
}

std::int64_t BatchPlan::picture(std::uint64_t sample, bool class_image) {
  const std::int64_t count = class_image ? class_images_ : photos_;
  Order& order = class_image ? class_order_ : photo_order_;
  const std::uint64_t epoch = sample / static_cast<std::uint64_t>(count);
  if (order.pictures.empty() || order.epoch != epoch) {
    const model::Draw purpose = class_image ? model::Draw::kClassOrder : model::Draw::kOrder;
    order = {epoch, model::draw_permutation(seed_, purpose, epoch, count)};
  }
  return order.pictures[sample % static_cast<std::uint64_t>(count)];
}

}  // namespace sdtune::train
