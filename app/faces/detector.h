// Finds faces with OpenCV. Part of the program sdtune-faces alone: OpenCV's detectors pull in another protobuf than
// LibTorch carries, so they are never linked into a process with it.
#pragma once

#include <memory>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

namespace sdtune::faces {

struct Face {
  cv::Rect2f box;    // px of the image given
  double score = 0;  // the larger, the surer; comparable only within one model
  // Eyes, tip of the nose, corners of the mouth, the image's left first; px. Cascades find none: empty.
  std::vector<cv::Point2f> landmarks = {};
};

class Detector {
 public:
  virtual ~Detector() = default;
  // Faces of an RGB image [H, W] of 8 bits a channel, the largest first. Keeps no state between
  // images.
  virtual std::vector<Face> find(const cv::Mat& rgb) = 0;
};

// A cascade (.xml: Haar or LBP) or a YuNet network (.onnx), by the file's ending. Throws std::runtime_error saying why
// not.
std::unique_ptr<Detector> make_detector(const std::string& model_file);

}  // namespace sdtune::faces
