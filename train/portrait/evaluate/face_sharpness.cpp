#include "train/portrait/evaluate/face_sharpness.h"

#include <c10/core/GradMode.h>

#include <cmath>
#include <limits>
#include <vector>

#include "model/core/check.h"

namespace sdtune::train::evaluate {
namespace {

using portrait::Landmark;

constexpr double kRadius = 1.3;         // of the face, in distances between eyes and mouth
constexpr double kSeen = 0.5;           // probability of a landmark
constexpr double kLeastDistance = 0.1;  // between eyes and mouth, of half an image

// A Gaussian of that standard deviation, in px, over grey images [N, 1, S, S]; borders are repeated.
torch::Tensor blurred(const torch::Tensor& grey, double deviation) {
  const auto reach = static_cast<std::int64_t>(std::ceil(3 * deviation));
  torch::Tensor kernel = torch::arange(-reach, reach + 1, grey.options());
  kernel = (-0.5 * (kernel / deviation).square()).exp();
  kernel = kernel / kernel.sum();
  const torch::Tensor padded = at::replication_pad2d(grey, {reach, reach, reach, reach});
  return at::conv2d(at::conv2d(padded, kernel.view({1, 1, 1, -1})), kernel.view({1, 1, -1, 1}));
}

torch::Tensor landmark(const classifier::Reading& reading, Landmark which) {
  return reading.landmarks.select(1, static_cast<std::int64_t>(which));  // [N, 2]
}

// Disc of the face, [N, S, S] bool; all false where there is none to be seen.
torch::Tensor face_discs(const classifier::Reading& reading, std::int64_t side) {
  const torch::Tensor eyes = (landmark(reading, Landmark::kLeftEye) + landmark(reading, Landmark::kRightEye)) / 2;
  const torch::Tensor mouth =
      (landmark(reading, Landmark::kLeftMouthCorner) + landmark(reading, Landmark::kRightMouthCorner)) / 2;
  const torch::Tensor distance = (eyes - mouth).norm(2, {1});
  const torch::Tensor is_seen = reading.landmark_seen.gt(kSeen).all(1).logical_and(distance.gt(kLeastDistance));
  const torch::Tensor middle = reading.landmarks.mean(1);  // [N, 2]
  const torch::Tensor place =
      (torch::arange(side, reading.landmarks.options()) + 0.5) * (2.0 / static_cast<double>(side)) - 1;
  const torch::Tensor across = place.view({1, 1, -1}) - middle.select(1, 0).view({-1, 1, 1});
  const torch::Tensor down = place.view({1, -1, 1}) - middle.select(1, 1).view({-1, 1, 1});
  const torch::Tensor inside = (across.square() + down.square()).sqrt().lt((kRadius * distance).view({-1, 1, 1}));
  return inside.logical_and(is_seen.view({-1, 1, 1}));
}

// Squared gradient by forward differences, [N, S - 1, S - 1].
torch::Tensor squared_gradient(const torch::Tensor& grey) {
  const torch::Tensor here = grey.select(1, 0).slice(1, 0, -1).slice(2, 0, -1);
  const torch::Tensor across = grey.select(1, 0).slice(1, 0, -1).slice(2, 1) - here;
  const torch::Tensor down = grey.select(1, 0).slice(1, 1).slice(2, 0, -1) - here;
  return across.square() + down.square();
}

}  // namespace

torch::Tensor face_gradient_energy(const torch::Tensor& images, const classifier::Reading& reading) {
  const c10::AutoGradMode no_gradients(false);
  model::check_shape(images, {-1, 3, images.size(3), -1}, "images whose sharpness is measured");
  const torch::Tensor grey = images.to(torch::kCPU, torch::kFloat32).mean(1, /*keepdim=*/true);
  const torch::Tensor discs = face_discs(reading, images.size(3)).slice(1, 0, -1).slice(2, 0, -1);
  const torch::Tensor pixels = discs.sum({1, 2}).to(torch::kFloat64);
  std::vector<torch::Tensor> bands;
  torch::Tensor sharper = grey;
  double deviation = 1;
  for (std::size_t band = 0; band < kBandNames.size(); ++band, deviation *= 2) {
    const torch::Tensor softer = blurred(grey, deviation);
    const torch::Tensor energy = squared_gradient(sharper - softer).masked_fill(discs.logical_not(), 0.0);
    bands.push_back(energy.to(torch::kFloat64).sum({1, 2}) / pixels);  // 0 / 0 where there is no face
    sharper = softer;
  }
  return torch::stack(bands, 1);
}

torch::Tensor mean_energy(const torch::Tensor& energy) {
  return energy.nanmean(0);
}

}  // namespace sdtune::train::evaluate
