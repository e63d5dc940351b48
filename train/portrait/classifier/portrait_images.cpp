#include "train/portrait/classifier/portrait_images.h"

#include "model/core/image_tensor.h"

namespace sdtune::train::classifier {

torch::Tensor portrait_images(const std::vector<portrait::Portrait>& portraits, std::int64_t size, int threads) {
  std::vector<std::uint8_t> rgb = portrait::render_batch(portraits, size, threads);
  const auto count = static_cast<std::int64_t>(portraits.size());
  const torch::Tensor bytes = torch::from_blob(rgb.data(), {count, size, size, 3}, torch::TensorOptions(torch::kUInt8));
  // The arithmetic makes a tensor of its own, so `rgb` may go.
  return model::normalized_pixels(bytes);
}

}  // namespace sdtune::train::classifier
