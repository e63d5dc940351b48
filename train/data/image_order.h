// Which image each sample of a run shows, of one kind (photos, or class images): a pure function of the seed and
// the sample's number.
#pragma once

#include <cstdint>
#include <vector>

#include "model/core/random.h"

namespace sdtune::train {

// What one epoch holds. An entry is an image; one that is repeated has several entries.
struct EpochImages {
  std::vector<std::int64_t> images;   // of each entry
  std::vector<std::int64_t> buckets;  // of each entry: the images of one step are of one bucket

  std::int64_t size() const { return static_cast<std::int64_t>(images.size()); }
  // Images 0 .. count - 1, once each, all in one bucket.
  static EpochImages once(std::int64_t count);
};

// Every entry of a bucket is used once before any is used again, in an order drawn anew each time. With several buckets
// each step takes all its images from one: in every cycle of as many steps as there are entries (divided by what the
// sizes of the buckets have in common), each bucket has as many steps as it has entries, in an order drawn anew each
// cycle. So all entries are used equally often, and a step's images do not depend on who computes them.
class ImageOrder {
 public:
  // `purpose`: kOrder or kClassOrder. batch: images a step. An empty epoch may not be asked for images.
  ImageOrder(std::uint64_t seed, model::Draw purpose, const EpochImages& epoch, std::int64_t batch);

  // The image of place `place` (0 .. batch - 1) of a step.
  std::int64_t image(std::uint64_t step, std::int64_t place);
  std::int64_t epoch_size() const { return entries_; }

 private:
  struct Bucket {
    std::vector<std::int64_t> images;
    std::uint64_t pass = ~std::uint64_t{0};  // whose order this is, kept because neighbouring samples ask for the same
    std::vector<std::int64_t> order;
  };
  // Of one step: its bucket, and the steps that bucket had before.
  struct Turn {
    std::size_t bucket = 0;
    std::uint64_t earlier = 0;
  };

  Turn turn(std::uint64_t step);
  void draw_cycle(std::uint64_t cycle);

  std::uint64_t seed_;
  model::Draw purpose_;
  std::int64_t entries_;
  std::uint64_t batch_;
  std::vector<Bucket> buckets_;
  std::vector<std::uint64_t> shares_;        // steps of each bucket in a cycle
  std::uint64_t cycle_ = ~std::uint64_t{0};  // whose turns these are
  std::vector<Turn> turns_;                  // earlier: within the cycle
};

}  // namespace sdtune::train
