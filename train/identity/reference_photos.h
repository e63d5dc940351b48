// Photos as the reader of an identity evaluation takes them, kept while the preflight decodes each, so that none is
// decoded again for it.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "model/base/image.h"
#include "train/data/face_finder.h"
#include "train/data/photo_folder.h"

namespace sdtune::train {

class ReferencePhotos {
 public:
  static constexpr std::int64_t kMaxBytes = std::int64_t{1} << 30;  // beyond that photos are decoded again

  // `side`: px of the middle square that a portrait classifier reads; unset: whole photos of at most 1024 px, as a face
  // recognition network takes them.
  explicit ReferencePhotos(std::optional<std::int64_t> side, std::int64_t max_bytes = kMaxBytes);

  // From several threads.
  void keep(const Photo& photo, const Image& image);

  // [3, H, W] in [-1, 1], as the reader takes it. Throws DataError for a photo that there was no room for and that is
  // not there any more.
  torch::Tensor read(const Photo& photo) const;

 private:
  Image for_reader(const Image& photo) const;

  std::optional<std::int64_t> side_;
  std::int64_t free_bytes_;
  mutable std::mutex mutex_;
  std::map<std::filesystem::path, Image> photos_;
};

// What the preflight leaves for the identity evaluations of the run.
struct IdentityInputs {
  std::shared_ptr<const ReferencePhotos> photos;
  std::shared_ptr<FaceFinder> recognizer;  // null without identity_model
};

}  // namespace sdtune::train
