#include "app/faces/recognizer.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <opencv2/imgproc.hpp>
#include <stdexcept>

#include "app/faces/onnx_header.h"

namespace sdtune::faces {

namespace {

constexpr int kTemplateSide = 112;  // px
// Where InsightFace puts eyes, nose and corners of the mouth (arcface_dst of its face_align), the image's left first.
constexpr float kTemplate[5][2] = {
    {38.2946f, 51.6963f}, {73.5318f, 51.5014f}, {56.0252f, 71.7366f}, {41.5493f, 92.3655f}, {70.7299f, 92.2041f}};
// A frontal cascade's box has the eyes at 0.39 of its height, 0.41 of its width apart: so it lies in the template.
constexpr float kBoxLeft = 13, kBoxTop = 18, kBoxSide = 86;

using Point = std::complex<double>;

cv::Matx23f similarity(const Point& factor, const Point& shift) {
  const auto a = static_cast<float>(factor.real()), b = static_cast<float>(factor.imag());
  return {a, -b, static_cast<float>(shift.real()), b, a, static_cast<float>(shift.imag())};
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

// Means and scale inside the network, as MXNet's exports have them.
bool normalises_itself(const std::vector<std::string>& operators) {
  const auto has = [&](const char* type) {
    return std::find(operators.begin(), operators.end(), type) != operators.end();
  };
  return has("Sub") && has("Mul");
}

}  // namespace

cv::Matx23f upright_transform(const Face& face, int side) {
  const double enlarged = static_cast<double>(side) / kTemplateSide;
  if (face.landmarks.empty()) {
    const double factor = enlarged * kBoxSide / std::max(face.box.width, face.box.height);
    const Point middle(face.box.x + face.box.width / 2, face.box.y + face.box.height / 2);
    const Point wanted(kBoxLeft + kBoxSide / 2, kBoxTop + kBoxSide / 2);
    return similarity(factor, enlarged * wanted - factor * middle);
  }
  Point from_mean, to_mean;
  std::vector<Point> from, to;
  for (std::size_t i = 0; i < 5; ++i) {
    from.emplace_back(face.landmarks.at(i).x, face.landmarks.at(i).y);
    to.push_back(enlarged * Point(kTemplate[i][0], kTemplate[i][1]));
    from_mean += from.back() / 5.0;
    to_mean += to.back() / 5.0;
  }
  // w = sum(conj(f) t) / sum(|f|^2) over the centred points minimises sum |w f - t|^2.
  Point product;
  double squares = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    product += std::conj(from[i] - from_mean) * (to[i] - to_mean);
    squares += std::norm(from[i] - from_mean);
  }
  if (!(squares > 0)) return upright_transform({face.box, face.score, {}}, side);
  const Point factor = product / squares;
  return similarity(factor, to_mean - factor * from_mean);
}

Recognizer::Recognizer(const std::string& file) : file_(file) {
  OnnxHeader header;
  try {
    header = read_onnx_header(file);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(file + " " + error.what());
  }
  const std::vector<std::int64_t>& shape = header.input_shape;
  const bool is_image = shape.size() == 4 && shape[1] == 3 && shape[2] == shape[3] && shape[2] >= 0 && shape[2] <= 512;
  if (!is_image) {
    throw std::runtime_error(file + " is no face recognition network (its input is " + shape_text(shape) +
                             "; allowed: [N, 3, S, S])");
  }
  if (shape[2] > 0) side_ = static_cast<int>(shape[2]);
  if (!normalises_itself(header.first_operators)) mean_ = 127.5, scale_ = 1 / 127.5;
  try {
    network_ = cv::dnn::readNetFromONNX(file);
    forward(cv::Mat(side_, side_, CV_8UC3, cv::Scalar::all(127)));
  } catch (const cv::Exception& error) {
    throw std::runtime_error(file + " cannot be used by OpenCV: " + error.err);
  }
}

// [1, D] float32.
cv::Mat Recognizer::forward(const cv::Mat& upright) {
  network_.setInput(cv::dnn::blobFromImage(upright, scale_, upright.size(), cv::Scalar::all(mean_), /*swapRB=*/false));
  const cv::Mat output = network_.forward();
  if (output.depth() != CV_32F || output.total() < 2) {
    throw std::runtime_error(file_ + " gives no vector for a face");
  }
  return output.reshape(1, 1);
}

std::vector<float> Recognizer::embed(const cv::Mat& rgb, const Face& face) {
  cv::Mat upright;
  cv::warpAffine(rgb, upright, upright_transform(face, side_), {side_, side_}, cv::INTER_LINEAR, cv::BORDER_CONSTANT);
  cv::Mat vector = forward(upright).clone();
  const double length = cv::norm(vector);
  if (!std::isfinite(length) || length <= 0) {
    throw std::runtime_error(file_ + " gives no finite vector for a face");
  }
  vector /= length;
  return {vector.begin<float>(), vector.end<float>()};
}

}  // namespace sdtune::faces
