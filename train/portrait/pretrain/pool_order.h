// Which images of the pool a step sees: every image once an epoch, in an order that (seed, epoch) alone decides.
#pragma once

#include <cstdint>
#include <vector>

namespace sdtune::train::pretrain {

class PoolOrder {
 public:
  // `shard` images become ready together: the first epoch goes through the shards one after another, so that training
  // begins when the first of them is used. Later epochs shuffle the whole pool.
  PoolOrder(std::uint64_t seed, std::int64_t count, std::int64_t shard) : seed_(seed), count_(count), shard_(shard) {}

  // The images of samples [first, first + batch), counted over the whole training.
  std::vector<std::int64_t> images(std::uint64_t first, std::int64_t batch);
  // Which pass over the pool that sample belongs to.
  std::uint64_t epoch(std::uint64_t sample) const { return sample / static_cast<std::uint64_t>(count_); }
  // Of the caption of that sample, which shows `image`: the image below bit 40, the epoch above, so that each epoch has
  // new words.
  std::uint64_t caption_seed(std::int64_t image, std::uint64_t sample) const {
    return static_cast<std::uint64_t>(image) + (epoch(sample) << 40);
  }

 private:
  std::int64_t image(std::uint64_t sample);
  void shuffle(std::uint64_t epoch);

  std::uint64_t seed_;
  std::int64_t count_;
  std::int64_t shard_;
  std::uint64_t shuffled_epoch_ = ~std::uint64_t{0};
  std::vector<std::int64_t> order_;  // of shuffled_epoch_
};

}  // namespace sdtune::train::pretrain
