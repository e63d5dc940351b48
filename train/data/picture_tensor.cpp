#include "train/data/picture_tensor.h"

#include <algorithm>

namespace sdtune::train {

torch::Tensor picture_to_tensor(const Image& image) {
  // from_blob only looks at the bytes; the arithmetic makes a tensor of its own.
  const torch::Tensor bytes = torch::from_blob(const_cast<std::uint8_t*>(image.rgb.data()),
                                               {image.height, image.width, 3}, torch::TensorOptions(torch::kUInt8));
  return bytes.permute({2, 0, 1}).to(torch::kFloat32).div(127.5).sub(1.0).contiguous();
}

Image tensor_to_picture(const torch::Tensor& picture) {
  TORCH_CHECK(picture.dim() == 3 && picture.size(0) == 3, "a picture is [3, H, W], got ", picture.sizes());
  const torch::Tensor bytes = picture.detach()
                                  .to(torch::kCPU, torch::kFloat32)
                                  .clamp(0.0, 1.0)
                                  .mul(255.0)
                                  .round()
                                  .to(torch::kUInt8)
                                  .permute({1, 2, 0})
                                  .contiguous();
  Image image;
  image.height = bytes.size(0);
  image.width = bytes.size(1);
  const auto* begin = bytes.const_data_ptr<std::uint8_t>();
  image.rgb.assign(begin, begin + bytes.numel());
  return image;
}

}  // namespace sdtune::train
