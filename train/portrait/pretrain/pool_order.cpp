#include "train/portrait/pretrain/pool_order.h"

#include <algorithm>
#include <numeric>

#include "model/core/random.h"

namespace sdtune::train::pretrain {
namespace {

// The shards of the first epoch are shuffled by keys of their own, behind those of all epochs.
constexpr std::uint64_t kShardKeys = std::uint64_t{1} << 40;

}  // namespace

void PoolOrder::shuffle(std::uint64_t epoch) {
  if (epoch > 0) {
    order_ = model::draw_permutation(seed_, model::Draw::kOrder, epoch, count_);
  } else {
    order_.clear();
    for (std::int64_t begin = 0; begin < count_; begin += shard_) {
      const std::uint64_t key = kShardKeys + static_cast<std::uint64_t>(begin / shard_);
      const std::int64_t size = std::min(shard_, count_ - begin);
      for (const std::int64_t i : model::draw_permutation(seed_, model::Draw::kOrder, key, size)) {
        order_.push_back(begin + i);
      }
    }
  }
  shuffled_epoch_ = epoch;
}

std::int64_t PoolOrder::image(std::uint64_t sample) {
  if (epoch(sample) != shuffled_epoch_) shuffle(epoch(sample));
  return order_[static_cast<std::size_t>(sample % static_cast<std::uint64_t>(count_))];
}

std::vector<std::int64_t> PoolOrder::images(std::uint64_t first, std::int64_t batch) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < batch; ++i) indices.push_back(image(first + static_cast<std::uint64_t>(i)));
  return indices;
}

}  // namespace sdtune::train::pretrain
