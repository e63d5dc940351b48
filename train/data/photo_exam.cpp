#include "train/data/photo_exam.h"

#include <algorithm>
#include <utility>

#include "model/image/png_text.h"

namespace sdtune::train {

namespace {

// px: detectors want faces of 40 px, and their time grows with the area.
constexpr std::int64_t kSmallestSearched = 256;  // the shorter side
constexpr std::int64_t kLargestSearched = 400;   // the longer side, unless the shorter one would be too short

// A small or long picture enlarged by a whole number, so that a face in it is large enough to be found, and a large one
// made smaller.
Image searched_picture(const Image& preview) {
  const std::int64_t shorter = std::min(preview.width, preview.height);
  const std::int64_t longer = std::max(preview.width, preview.height);
  if (shorter < kSmallestSearched) {
    const std::int64_t times = (kSmallestSearched + shorter - 1) / shorter;
    return model::resized(preview, times * preview.width, times * preview.height, model::Filter::kBicubic);
  }
  const std::int64_t side = std::max(kLargestSearched, longer * kSmallestSearched / shorter);
  if (longer <= side) return preview;
  return model::resized(preview, preview.width * side / longer, preview.height * side / longer,
                        model::Filter::kBilinear);
}

}  // namespace

PhotoExaminer::PhotoExaminer(const std::string& face_model) {
  try {
    models_ = face_models(face_model);
    idle_.push_back(std::make_unique<FaceFinder>(models_));
  } catch (const DataError& error) {
    trouble_ = error.problems().front().line();
  }
}

void PhotoExaminer::examine(Photo& photo, const Image& preview) {
  PhotoExam exam;
  exam.signs = model::picture_signs(preview);
  exam.is_rendered = model::is_made_by_sdtune(photo.path);
  if (trouble().empty()) {
    const Image searched = searched_picture(preview);
    const double scale = static_cast<double>(photo.width) / static_cast<double>(searched.width);
    try {
      std::unique_ptr<FaceFinder> finder = take_finder();
      for (const model::ImageBox& face : finder->find(searched)) {
        exam.faces.push_back({face.left * scale, face.top * scale, face.width * scale, face.height * scale});
      }
      exam.searched = true;
      put_back(std::move(finder));
    } catch (const DataError& error) {
      const std::lock_guard lock(mutex_);
      trouble_ = error.problems().front().line();
    }
  }
  if (!photo.face && !exam.faces.empty()) photo.face = exam.faces.front();
  photo.exam = std::move(exam);
}

std::unique_ptr<FaceFinder> PhotoExaminer::take_finder() {
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

void PhotoExaminer::put_back(std::unique_ptr<FaceFinder> finder) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(finder));
}

std::string PhotoExaminer::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

}  // namespace sdtune::train
