#include "model/generate/init_image.h"

#include <algorithm>
#include <cmath>

#include "model/core/image_tensor.h"
#include "model/image/image_read.h"
#include "model/image/resample.h"
#include "model/pipeline/text_to_image.h"

namespace sdtune::model {
namespace {

PixelSize init_size(const InitImageFile& wanted, const Image& image, const ModelBundle& bundle) {
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  double scale = std::min(1.0, static_cast<double>(bundle.resolution()) / std::sqrt(width * height));
  if (wanted.width) scale = static_cast<double>(*wanted.width) / width;
  if (wanted.height && !wanted.width) scale = static_cast<double>(*wanted.height) / height;
  const auto in_cells = [&](double length) {
    const auto cells = static_cast<std::int64_t>(length * scale / static_cast<double>(bundle.vae_factor()) + 1e-6);
    return std::max<std::int64_t>(1, cells) * bundle.vae_factor();
  };
  return {wanted.height.value_or(in_cells(height)), wanted.width.value_or(in_cells(width))};
}

}  // namespace

torch::Tensor read_init_image(const InitImageFile& wanted, const ModelBundle& bundle) {
  Image image = read_image(wanted.file);
  const PixelSize size = init_size(wanted, image, bundle);
  if (size.width != image.width || size.height != image.height) {
    image = resized(image, size.width, size.height, Filter::kLanczos);
  }
  return image_to_tensor(image).unsqueeze(0);
}

}  // namespace sdtune::model
