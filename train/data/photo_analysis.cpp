#include "train/data/photo_analysis.h"

#include <utility>

namespace sdtune::train {

PhotoAnalyzer::PhotoAnalyzer(const std::string& face_model) {
  try {
    models_ = face_models(face_model);
    idle_.push_back(std::make_unique<FaceFinder>(models_));
  } catch (const DataError& error) {
    trouble_ = error.problems().front().line();
  }
}

void PhotoAnalyzer::examine(Photo& photo, const Image& preview) {
  PhotoAnalysis analysis;
  analysis.signs = model::image_signs(preview);
  if (trouble().empty()) {
    const Image searched = searched_image(preview);
    const double scale = static_cast<double>(photo.width) / static_cast<double>(searched.width);
    try {
      FoundFaces found = find_faces(searched);
      analysis.identity = std::move(found.identity);
      for (const model::ImageBox& face : found.faces) {
        analysis.faces.push_back({face.left * scale, face.top * scale, face.width * scale, face.height * scale});
      }
      analysis.searched = true;
    } catch (const DataError& error) {
      const std::lock_guard lock(mutex_);
      trouble_ = error.problems().front().line();
    }
  }
  if (!photo.face && !analysis.faces.empty()) photo.face = analysis.faces.front();
  photo.analysis = std::move(analysis);
}

FoundFaces PhotoAnalyzer::find_faces(const Image& searched) {
  if (recognizer_) return recognizer_->find(searched);
  std::unique_ptr<FaceFinder> finder = take_finder();
  FoundFaces found = finder->find(searched);
  put_back(std::move(finder));
  return found;
}

std::unique_ptr<FaceFinder> PhotoAnalyzer::take_finder() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<FaceFinder> finder = std::move(idle_.back());
      idle_.pop_back();
      return finder;
    }
  }
  return std::make_unique<FaceFinder>(models_);
}

void PhotoAnalyzer::put_back(std::unique_ptr<FaceFinder> finder) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(finder));
}

std::string PhotoAnalyzer::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

}  // namespace sdtune::train
