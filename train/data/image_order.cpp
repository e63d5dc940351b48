#include "train/data/image_order.h"

#include <map>
#include <numeric>

namespace sdtune::train {

namespace {

// What draw_permutation calls an epoch, below 2^43: the pass over a bucket, or the cycle of the buckets.
std::uint64_t pass_index(std::size_t bucket, std::uint64_t pass) {
  return (static_cast<std::uint64_t>(bucket) << 32) | pass;
}
std::uint64_t cycle_index(std::uint64_t cycle) {
  return (std::uint64_t{1} << 42) | cycle;
}

}  // namespace

EpochImages EpochImages::once(std::int64_t count) {
  EpochImages epoch;
  epoch.images.resize(static_cast<std::size_t>(count));
  std::iota(epoch.images.begin(), epoch.images.end(), 0);
  epoch.buckets.resize(epoch.images.size());
  return epoch;
}

ImageOrder::ImageOrder(std::uint64_t seed, model::Draw purpose, const EpochImages& epoch, std::int64_t batch)
    : seed_(seed), purpose_(purpose), entries_(epoch.size()), batch_(static_cast<std::uint64_t>(batch)) {
  std::map<std::int64_t, std::vector<std::int64_t>> by_bucket;
  for (std::size_t i = 0; i < epoch.images.size(); ++i) {
    by_bucket[epoch.buckets.at(i)].push_back(epoch.images[i]);
  }
  std::uint64_t common = 0;
  for (auto& [bucket, images] : by_bucket) {
    common = std::gcd(common, static_cast<std::uint64_t>(images.size()));
    buckets_.push_back({std::move(images), ~std::uint64_t{0}, {}});
  }
  for (const Bucket& bucket : buckets_) shares_.push_back(bucket.images.size() / common);
}

std::int64_t ImageOrder::image(std::uint64_t step, std::int64_t place) {
  const Turn now = turn(step);
  Bucket& bucket = buckets_.at(now.bucket);
  const std::uint64_t count = bucket.images.size();
  const std::uint64_t sample = now.earlier * batch_ + static_cast<std::uint64_t>(place);
  const std::uint64_t pass = sample / count;
  if (bucket.pass != pass) {
    const std::uint64_t index = pass_index(now.bucket, pass);
    bucket.order = model::draw_permutation(seed_, purpose_, index, static_cast<std::int64_t>(count));
    bucket.pass = pass;
  }
  return bucket.images[static_cast<std::size_t>(bucket.order[sample % count])];
}

ImageOrder::Turn ImageOrder::turn(std::uint64_t step) {
  if (buckets_.size() == 1) return {0, step};
  const std::uint64_t length = std::accumulate(shares_.begin(), shares_.end(), std::uint64_t{0});
  const std::uint64_t cycle = step / length;
  if (cycle_ != cycle) draw_cycle(cycle);
  const Turn within = turns_[step % length];
  return {within.bucket, cycle * shares_[within.bucket] + within.earlier};
}

void ImageOrder::draw_cycle(std::uint64_t cycle) {
  std::vector<std::size_t> in_turn;  // bucket of each step, before it is shuffled
  for (std::size_t bucket = 0; bucket < shares_.size(); ++bucket)
    in_turn.insert(in_turn.end(), shares_[bucket], bucket);
  std::vector<std::uint64_t> had(shares_.size(), 0);
  turns_.clear();
  const auto length = static_cast<std::int64_t>(in_turn.size());
  for (const std::int64_t place : model::draw_permutation(seed_, purpose_, cycle_index(cycle), length)) {
    const std::size_t bucket = in_turn[static_cast<std::size_t>(place)];
    turns_.push_back({bucket, had[bucket]++});
  }
  cycle_ = cycle;
}

}  // namespace sdtune::train
