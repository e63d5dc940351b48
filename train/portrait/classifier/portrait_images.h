// Rendered portraits as the classifier takes them.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "train/portrait/renderer/portrait_batch.h"

namespace sdtune::train::classifier {

// [portraits.size(), 3, size, size] float32 in [-1, 1] on the CPU, rendered on `threads` threads.
torch::Tensor portrait_images(const std::vector<portrait::Portrait>& portraits, std::int64_t size, int threads);

}  // namespace sdtune::train::classifier
