// What is analysed in each photo while it is read: its quality and its faces.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "train/data/face_finder.h"
#include "train/data/photo_folder.h"

namespace sdtune::train {

// Analyses photos from several threads. Faces are an extra: where they cannot be searched for, trouble() says why.
class PhotoAnalyzer {
 public:
  // With sdtune-faces where it can be started. `face_model` as face_models() takes it: throws ConfigError for a bad
  // one.
  explicit PhotoAnalyzer(const std::string& face_model);
  // With a started one alone, since its recognition network takes memory; it fills photo.analysis's identity, too.
  explicit PhotoAnalyzer(std::shared_ptr<FaceFinder> recognizer) : recognizer_(std::move(recognizer)) {}

  // Fills photo.analysis, and photo.face unless metadata.jsonl gave one. `preview` is the photo with a longer side of
  // about kPreviewSide px.
  void examine(Photo& photo, const Image& preview);
  // Why faces were not searched for; empty when they were.
  std::string trouble() const;

 private:
  FoundFaces find_faces(const Image& searched);
  std::unique_ptr<FaceFinder> take_finder();
  void put_back(std::unique_ptr<FaceFinder> finder);

  mutable std::mutex mutex_;
  std::vector<std::filesystem::path> models_;
  std::shared_ptr<FaceFinder> recognizer_;         // null: those of idle_
  std::vector<std::unique_ptr<FaceFinder>> idle_;  // a process each; as many are started as threads ask at once
  std::string trouble_;
};

}  // namespace sdtune::train
