#include "app/commands/start_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "model/image/image_read.h"
#include "model/image/resample.h"

namespace sdtune::app {
namespace {

struct Size {
  std::int64_t width;
  std::int64_t height;
};

Size size_of(const SampleOptions& options, const Image& picture, const model::ModelBundle& bundle) {
  const auto width = static_cast<double>(picture.width), height = static_cast<double>(picture.height);
  const auto side = static_cast<double>(bundle.unet->config().sample_size * bundle.vae_factor());
  double scale = std::min(1.0, side / std::sqrt(width * height));
  if (options.width) scale = static_cast<double>(*options.width) / width;
  if (options.height && !options.width) scale = static_cast<double>(*options.height) / height;
  const auto in_cells = [&](double length) {
    const auto cells = static_cast<std::int64_t>(length * scale / static_cast<double>(bundle.vae_factor()) + 1e-6);
    return std::max<std::int64_t>(1, cells) * bundle.vae_factor();
  };
  return {options.width.value_or(in_cells(width)), options.height.value_or(in_cells(height))};
}

}  // namespace

torch::Tensor read_start_picture(const SampleOptions& options, const model::ModelBundle& bundle) {
  Image picture = model::read_image(options.init_image);
  const Size size = size_of(options, picture, bundle);
  if (size.width != picture.width || size.height != picture.height) {
    picture = model::resized(picture, size.width, size.height, model::Filter::kLanczos);
  }
  const torch::Tensor pixels = torch::tensor(torch::ArrayRef<std::uint8_t>(picture.rgb), torch::kUInt8);
  return (pixels.to(torch::kFloat32) / 255 * 2 - 1).view({1, size.height, size.width, 3}).permute({0, 3, 1, 2});
}

}  // namespace sdtune::app
