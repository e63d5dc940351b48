// Says whose face it is: a vector that is nearly the same in all images of one person. Part of sdtune-faces alone, as
// the detectors are.
#pragma once

#include <opencv2/core.hpp>
#include <opencv2/dnn.hpp>
#include <string>
#include <vector>

#include "app/faces/detector.h"

namespace sdtune::faces {

// A network of ArcFace's kind (Deng et al., "ArcFace: Additive angular margin loss for deep face recognition", CVPR
// 2019): an upright face of 112 x 112 px in, one vector out.
class Recognizer {
 public:
  // An ONNX file whose input is [N, 3, S, S], RGB. As InsightFace does, a network that begins by subtracting and
  // multiplying is given 0 .. 255, any other (pixel - 127.5) / 127.5. Throws std::runtime_error saying why not.
  explicit Recognizer(const std::string& file);

  // Of a face in an RGB image [H, W] of 8 bits a channel: a vector of length 1.
  std::vector<float> embed(const cv::Mat& rgb, const Face& face);

 private:
  cv::Mat forward(const cv::Mat& upright);

  cv::dnn::Net network_;
  int side_ = 112;    // px
  double mean_ = 0;   // subtracted from each channel,
  double scale_ = 1;  // and what the difference is multiplied by
  std::string file_;  // for errors
};

// The similarity transform [2, 3] that takes the face to its place in an image of side x side px: its landmarks to
// InsightFace's template, in the sense of least squares; without landmarks its box to where a cascade frames a face
// that lies so.
cv::Matx23f upright_transform(const Face& face, int side);

}  // namespace sdtune::faces
