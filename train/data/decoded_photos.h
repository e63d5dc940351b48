// Photos in memory between the preflight, which decodes each to prove that it can be, and the latent cache: so a photo
// is decoded once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "model/base/image.h"
#include "model/image/crop.h"
#include "model/image/resample.h"
#include "train/data/crop_rule.h"
#include "train/data/photo_folder.h"

namespace sdtune::train {

struct DecodedPhoto {
  std::int64_t width = 0;   // px, of the file as seen
  std::int64_t height = 0;  // px
  std::string sha256;       // of the file
  model::CropPlan plan;
  Image resized;  // to the plan's size, not cut yet
};

class DecodedPhotos {
 public:
  static constexpr std::int64_t kMaxBytes = std::int64_t{2} << 30;  // beyond that photos are decoded again

  // `shows_faces`: crops are moved to the faces, as face_to_show says.
  DecodedPhotos(CropRule rule, model::Filter filter, bool shows_faces, std::int64_t max_bytes = kMaxBytes);

  // Resizes the photo for its crop and keeps it while there is room. From several threads.
  void keep(const Photo& photo, const Image& image);

  // The photo of that file, null where it was not kept.
  std::shared_ptr<const DecodedPhoto> find(const std::filesystem::path& path) const;

 private:
  CropRule rule_;
  model::Filter filter_;
  bool shows_faces_;
  std::int64_t free_bytes_;
  mutable std::mutex mutex_;
  std::map<std::filesystem::path, std::shared_ptr<const DecodedPhoto>> photos_;
};

}  // namespace sdtune::train
