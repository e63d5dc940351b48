// Where faces are, and whose, as the program sdtune-faces sees it: OpenCV's detectors cannot be linked into a process
// with LibTorch.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "model/base/image.h"
#include "model/image/crop.h"
#include "train/data/face_program.h"

namespace sdtune::train {

struct FoundFaces {
  std::vector<model::ImageBox> faces;  // px of the image, the largest first
  std::vector<float> identity;         // the largest as the recognition network sees it, of length 1; empty without
};

// The started program. Calls may come from several threads; they are answered one after the other.
class FaceFinder {
 public:
  // Starts it with these models (face_models()), of which the first that finds a face decides, and with a face
  // recognition network (.onnx), or none. Throws DataError when the program or a model is missing or cannot be used.
  explicit FaceFinder(const std::vector<std::filesystem::path>& models, const std::filesystem::path& recognizer = {},
                      FaceProgramOptions options = {});

  // Throws DataError when the program has ended or does not answer in time; the next call starts it anew.
  FoundFaces find(const Image& image);

 private:
  std::mutex mutex_;
  FaceProgram program_;
};

// The model files: the one the user names, else the cascades that came with sdtune or with Debian's opencv-data. Throws
// ConfigError for a file that is not there or is neither .xml nor .onnx, DataError where no cascade is installed.
std::vector<std::filesystem::path> face_models(const std::string& face_model);

// sdtune-faces with that network, started. Throws ConfigError naming identity_model for a file that is none, or that
// cannot be used.
std::shared_ptr<FaceFinder> start_recognizer(const std::filesystem::path& identity_model,
                                             const std::string& face_model);

// An image at the size that faces are searched at: a small one enlarged by a whole number, so that a face in it is
// large enough to be found, and a large one made smaller.
Image searched_image(const Image& image);

// The head around a face: detectors frame brows to chin. Reaches up by 0.6 of the face's height, down by 0.25 and to
// each side by 0.35 of its width; within an image of that size, px.
model::ImageBox head_around(const model::ImageBox& face, std::int64_t width, std::int64_t height);

}  // namespace sdtune::train
