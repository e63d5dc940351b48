#include "train/data/photo_exam.h"

#include <algorithm>

#include "model/image/png_text.h"

namespace sdtune::train {

namespace {

constexpr std::int64_t kSmallestSearched = 256;  // px, the shorter side: detectors want faces of 40 px

// A small or long picture enlarged by a whole number, so that a face in it is large enough to be found.
Image searched_picture(const Image& preview) {
  const std::int64_t side = std::min(preview.width, preview.height);
  if (side >= kSmallestSearched) return preview;
  const std::int64_t times = (kSmallestSearched + side - 1) / side;
  return model::resized(preview, times * preview.width, times * preview.height, model::Filter::kBicubic);
}

}  // namespace

PhotoExaminer::PhotoExaminer(const std::string& face_model) {
  try {
    finder_ = std::make_unique<FaceFinder>(face_models(face_model));
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
      for (const model::ImageBox& face : finder_->find(searched)) {
        exam.faces.push_back({face.left * scale, face.top * scale, face.width * scale, face.height * scale});
      }
      exam.searched = true;
    } catch (const DataError& error) {
      const std::lock_guard lock(mutex_);
      trouble_ = error.problems().front().line();
    }
  }
  if (!photo.face && !exam.faces.empty()) photo.face = exam.faces.front();
  photo.exam = std::move(exam);
}

std::string PhotoExaminer::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

}  // namespace sdtune::train
