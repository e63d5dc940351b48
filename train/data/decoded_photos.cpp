#include "train/data/decoded_photos.h"

#include <optional>
#include <utility>

#include "model/base/error.h"
#include "train/data/dataset_doctor.h"

namespace sdtune::train {

DecodedPhotos::DecodedPhotos(CropRule rule, model::Filter filter, bool shows_faces, std::int64_t max_bytes)
    : rule_(rule), filter_(filter), shows_faces_(shows_faces), free_bytes_(max_bytes) {}

void DecodedPhotos::keep(const Photo& photo, const Image& image) {
  std::optional<model::ImageBox> shown;
  if (shows_faces_) shown = face_to_show(photo, rule_);
  auto decoded = std::make_shared<DecodedPhoto>();
  try {
    decoded->plan = plan_crop(photo.width, photo.height, rule_, shown);
  } catch (const Error&) {
    return;  // no bucket is allowed: the check of the buckets says so
  }
  const std::int64_t bytes = 3 * decoded->plan.resized_width * decoded->plan.resized_height;
  {
    const std::lock_guard lock(mutex_);
    if (bytes > free_bytes_) return;
    free_bytes_ -= bytes;
  }
  decoded->width = photo.width;
  decoded->height = photo.height;
  decoded->sha256 = photo.sha256;
  decoded->resized = model::resized(image, decoded->plan.resized_width, decoded->plan.resized_height, filter_);
  const std::lock_guard lock(mutex_);
  photos_[photo.path] = std::move(decoded);
}

std::shared_ptr<const DecodedPhoto> DecodedPhotos::find(const std::filesystem::path& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = photos_.find(path);
  return found == photos_.end() ? nullptr : found->second;
}

}  // namespace sdtune::train
