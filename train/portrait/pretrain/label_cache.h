// Labels of the pool's images, found once: whether something covers a landmark or a mark is seen by rays, milliseconds
// an image, and a classifier meets each image in every epoch.
#pragma once

#include <cstdint>
#include <vector>

#include "train/portrait/classifier/classifier_labels.h"
#include "train/portrait/pretrain/image_pool.h"

namespace sdtune::train::pretrain {

class LabelCache {
 public:
  // Of the pool's first `images`; the pool must outlive this.
  LabelCache(const ImagePool& pool, std::int64_t images);

  // What classifier::labels_of says of these images, on the CPU; those not yet known are found on LibTorch's threads.
  classifier::Labels labels(const std::vector<std::int64_t>& indices);

 private:
  void find(const std::vector<std::int64_t>& indices);

  const ImagePool& pool_;
  classifier::Labels rows_;  // by image; `people` is unused
  std::vector<bool> known_;
};

}  // namespace sdtune::train::pretrain
