#include "model/core/image_tensor.h"

#include <cstdint>

#include "model/base/error.h"

namespace sdtune::model {

torch::Tensor image_bytes(const Image& image) {
  // Never written to: from_blob merely has no type for that.
  return torch::from_blob(const_cast<std::uint8_t*>(image.rgb.data()), {image.height, image.width, 3}, torch::kUInt8)
      .clone();
}

torch::Tensor normalized_pixels(const torch::Tensor& bytes) {
  return bytes.movedim(-1, -3).to(torch::kFloat32).div(127.5).sub(1.0).contiguous();
}

torch::Tensor image_to_tensor(const Image& image) {
  return normalized_pixels(image_bytes(image));
}

torch::Tensor pixels_to_bytes(const torch::Tensor& pixels) {
  TORCH_CHECK(pixels.dim() >= 3 && pixels.size(-3) == 3, "images are [..., 3, H, W], got ", pixels.sizes());
  const torch::Tensor numbers = pixels.detach().to(torch::kCPU, torch::kFloat32);
  // Looked for here, on the host, so that no GPU waits for it.
  if (torch::isfinite(numbers).logical_not().any().item<bool>()) {
    throw NonFiniteError("the image", "holds numbers that are not finite",
                         "float16 overflows above 65504: choose bfloat16 or float32; or weights are damaged");
  }
  return numbers.clamp(0.0, 1.0).mul(255.0).round().to(torch::kUInt8).movedim(-3, -1).contiguous();
}

Image bytes_to_image(const torch::Tensor& bytes) {
  TORCH_CHECK(bytes.dim() == 3 && bytes.size(2) == 3, "an image is [H, W, 3], got ", bytes.sizes());
  const torch::Tensor dense = bytes.contiguous();
  const auto* begin = dense.const_data_ptr<std::uint8_t>();
  return {dense.size(1), dense.size(0), std::vector<std::uint8_t>(begin, begin + dense.numel())};
}

Image tensor_to_image(const torch::Tensor& pixels) {
  return bytes_to_image(pixels_to_bytes(pixels));
}

std::vector<Image> tensor_to_images(const torch::Tensor& pixels) {
  std::vector<Image> images;
  if (!pixels.defined()) return images;
  for (const torch::Tensor& image : pixels.unbind()) images.push_back(tensor_to_image(image));
  return images;
}

}  // namespace sdtune::model
