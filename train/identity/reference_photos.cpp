#include "train/identity/reference_photos.h"

#include <algorithm>
#include <utility>

#include "model/core/image_tensor.h"
#include "model/image/crop.h"
#include "model/image/image_read.h"
#include "model/image/resample.h"

namespace sdtune::train {

namespace {

constexpr std::int64_t kLargestSide = 1024;  // px of a photo in which a face is recognized

}  // namespace

ReferencePhotos::ReferencePhotos(std::optional<std::int64_t> side, std::int64_t max_bytes)
    : side_(side), free_bytes_(max_bytes) {}

Image ReferencePhotos::for_reader(const Image& photo) const {
  if (side_) {
    const model::CropPlan plan = model::center_crop(photo.width, photo.height, *side_);
    return model::cropped(photo, plan, model::Filter::kBicubic);
  }
  const std::int64_t longer = std::max(photo.width, photo.height);
  if (longer <= kLargestSide) return photo;
  return model::resized(photo, std::max<std::int64_t>(1, photo.width * kLargestSide / longer),
                        std::max<std::int64_t>(1, photo.height * kLargestSide / longer), model::Filter::kBicubic);
}

void ReferencePhotos::keep(const Photo& photo, const Image& image) {
  Image scaled = for_reader(image);
  const auto bytes = static_cast<std::int64_t>(scaled.rgb.size());
  const std::lock_guard lock(mutex_);
  if (bytes > free_bytes_ || !photos_.try_emplace(photo.path, std::move(scaled)).second) return;
  free_bytes_ -= bytes;
}

torch::Tensor ReferencePhotos::read(const Photo& photo) const {
  {
    const std::lock_guard lock(mutex_);
    const auto kept = photos_.find(photo.path);
    if (kept != photos_.end()) return model::image_to_tensor(kept->second);
  }
  return model::image_to_tensor(for_reader(model::read_image(photo.path)));
}

}  // namespace sdtune::train
