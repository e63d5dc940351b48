#include "app/faces/detector.h"

#include <algorithm>
#include <opencv2/imgproc.hpp>
#include <opencv2/objdetect.hpp>
#include <stdexcept>
#include <utility>

namespace sdtune::faces {

namespace {

void largest_first(std::vector<Face>& faces) {
  std::stable_sort(faces.begin(), faces.end(),
                   [](const Face& a, const Face& b) { return a.box.area() > b.box.area(); });
}

class CascadeDetector : public Detector {
 public:
  explicit CascadeDetector(const std::string& file) {
    if (!cascade_.load(file)) throw std::runtime_error(file + " is not a cascade that OpenCV reads");
  }

  std::vector<Face> find(const cv::Mat& rgb) override {
    cv::Mat grey;
    cv::cvtColor(rgb, grey, cv::COLOR_RGB2GRAY);
    cv::equalizeHist(grey, grey);
    const int smallest = std::max(kSmallestFace, std::min(grey.rows, grey.cols) / kSmallestShare);
    std::vector<cv::Rect> boxes;
    std::vector<int> levels;
    std::vector<double> weights;
    cascade_.detectMultiScale(grey, boxes, levels, weights, kScaleStep, kNeighbours, 0, {smallest, smallest}, {}, true);
    std::vector<Face> faces;
    for (std::size_t i = 0; i < boxes.size(); ++i) faces.push_back({cv::Rect2f(boxes[i]), weights[i], {}});
    largest_first(faces);
    return faces;
  }

 private:
  static constexpr int kSmallestFace = 24;   // px, what the cascades were trained on
  static constexpr int kSmallestShare = 10;  // of the shorter side: a smaller face is no portrait
  static constexpr double kScaleStep = 1.15;
  static constexpr int kNeighbours = 3;

  cv::CascadeClassifier cascade_;
};

class YunetDetector : public Detector {
 public:
  explicit YunetDetector(const std::string& file)
      : network_(cv::FaceDetectorYN::create(file, "", {kTriedSide, kTriedSide})) {
    find(cv::Mat::zeros(kTriedSide, kTriedSide, CV_8UC3));  // a network with other outputs fails here, not in a photo
  }

  std::vector<Face> find(const cv::Mat& rgb) override {
    cv::Mat bgr, rows;
    cv::cvtColor(rgb, bgr, cv::COLOR_RGB2BGR);
    network_->setInputSize(bgr.size());
    network_->detect(bgr, rows);  // a face a row: x, y, width, height, five landmarks, score
    std::vector<Face> faces;
    for (int i = 0; i < rows.rows; ++i) {
      const float* row = rows.ptr<float>(i);
      Face face{{row[0], row[1], row[2], row[3]}, row[14], {}};
      for (int point = 0; point < 5; ++point) face.landmarks.emplace_back(row[4 + 2 * point], row[5 + 2 * point]);
      faces.push_back(std::move(face));
    }
    largest_first(faces);
    return faces;
  }

 private:
  static constexpr int kTriedSide = 256;  // px

  cv::Ptr<cv::FaceDetectorYN> network_;
};

}  // namespace

std::unique_ptr<Detector> make_detector(const std::string& model_file) {
  try {
    if (model_file.ends_with(".onnx")) return std::make_unique<YunetDetector>(model_file);
    return std::make_unique<CascadeDetector>(model_file);
  } catch (const cv::Exception& error) {
    std::string why = model_file + " cannot be read by OpenCV " CV_VERSION ": " + error.err;
    // https://github.com/opencv/opencv_zoo/issues/172
    if (model_file.ends_with(".onnx"))
      why += "; below 4.8 it reads YuNet's files until 2022 (2022mar), from 4.8 on those since";
    throw std::runtime_error(why);
  }
}

}  // namespace sdtune::faces
