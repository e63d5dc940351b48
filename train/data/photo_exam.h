// What is looked at in each photo while it is read: its signs and its faces.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "train/data/face_finder.h"
#include "train/data/photo_folder.h"

namespace sdtune::train {

// Looks at photos from several threads. Faces are an extra: where they cannot be looked for, trouble() says why.
class PhotoExaminer {
 public:
  // With sdtune-faces where it can be started. `face_model` as face_models() takes it: throws ConfigError for a bad
  // one.
  explicit PhotoExaminer(const std::string& face_model);

  // Fills photo.exam, and photo.face unless metadata.jsonl gave one. `preview` is the photo with a longer side of about
  // kPreviewSide px.
  void examine(Photo& photo, const Image& preview);
  // Why faces were not looked for; empty when they were.
  std::string trouble() const;

 private:
  mutable std::mutex mutex_;
  std::unique_ptr<FaceFinder> finder_;
  std::string trouble_;
};

}  // namespace sdtune::train
