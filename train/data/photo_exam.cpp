#include "train/data/photo_exam.h"

#include <utility>

#include "model/image/png_text.h"

namespace sdtune::train {

PhotoExaminer::PhotoExaminer(const std::string& face_model, const std::filesystem::path& recognizer)
    : recognizer_(recognizer) {
  try {
    models_ = face_models(face_model);
    idle_.push_back(std::make_unique<FaceFinder>(models_, recognizer_));
  } catch (const DataError& error) {
    if (!recognizer_.empty()) throw;
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
      FaceLook look = look_at(searched);
      exam.identity = std::move(look.identity);
      for (const model::ImageBox& face : look.faces) {
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

FaceLook PhotoExaminer::look_at(const Image& searched) {
  if (!recognizer_.empty()) return idle_.front()->look(searched);  // a network takes memory: one process for all
  std::unique_ptr<FaceFinder> finder = take_finder();
  FaceLook look = finder->look(searched);
  put_back(std::move(finder));
  return look;
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
  return std::make_unique<FaceFinder>(models_, recognizer_);
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
