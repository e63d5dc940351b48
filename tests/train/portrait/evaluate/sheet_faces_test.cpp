// The faces of the sheet at the top of README: two eyes and a mouth where the portrait classifier finds them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/core/image_tensor.h"
#include "model/files/install_paths.h"
#include "model/image/image_read.h"
#include "train/portrait/classifier/landmark_erasure.h"
#include "train/portrait/classifier/portrait_classifier.h"
#include "train/portrait/classifier/portrait_images.h"
#include "train/portrait/detailed/landmarks.h"
#include "train/portrait/renderer/portrait_set.h"

namespace sdtune::train::evaluate {
namespace {

using classifier::PortraitClassifier;
using classifier::Reading;
using portrait::Landmark;

constexpr std::int64_t kImageSide = 128;
constexpr std::int64_t kCell = 256, kGap = 4;  // px of the sheet, which shows images twice as large
constexpr std::size_t kColumns = 6, kSunglasses = 4;
constexpr double kSeenFrom = 0.5;
constexpr double kEyeRadius = 0.36,
                 kMouthRadius = 0.45;  // of the distance between the eyes, as erase_landmarks has them
// Contrast of an eye or mouth beside the skin between them: of 256 renders that show all three 98 % have more, of the
// same with one of them erased 4 % have (most because the classifier sees nothing there).
constexpr double kLeastContrast = 0.6;

struct Place {
  double x = 0, y = 0;  // px
};

Place place_of(const Reading& reading, std::int64_t row, Landmark which) {
  const auto k = static_cast<std::int64_t>(which);
  const auto pixel = [&](std::int64_t axis) {
    return (reading.landmarks[row][k][axis].item<double>() + 1) * (static_cast<double>(kImageSide) / 2);
  };
  return {pixel(0), pixel(1)};
}

bool is_seen(const Reading& reading, std::int64_t row, Landmark which) {
  return reading.landmark_seen[row][static_cast<std::int64_t>(which)].item<double>() > kSeenFrom;
}

Place between(Place a, Place b, double share = 0.5) {
  return {a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)};
}

// Mean gradient of the grey image in a disc. `grey` [S, S].
double contrast(const torch::Tensor& grey, Place at, double radius) {
  const auto pixels = grey.accessor<float, 2>();
  double sum = 0, count = 0;
  for (std::int64_t y = 1; y + 1 < kImageSide; ++y) {
    for (std::int64_t x = 1; x + 1 < kImageSide; ++x) {
      if (std::hypot(static_cast<double>(x) + 0.5 - at.x, static_cast<double>(y) + 0.5 - at.y) > radius) continue;
      sum += std::hypot(pixels[y][x + 1] - pixels[y][x - 1], pixels[y + 1][x] - pixels[y - 1][x]);
      count += 1;
    }
  }
  return count > 0 ? sum / count : 0;
}

// How much more contrast the weakest of both eyes and the mouth has than the cheeks; 0 where one is not seen or is not
// where a face has it.
double face_contrast(const torch::Tensor& image, const Reading& reading, std::int64_t row, bool has_eyes = true) {
  for (const Landmark which : {Landmark::kLeftMouthCorner, Landmark::kRightMouthCorner}) {
    if (!is_seen(reading, row, which)) return 0;
  }
  const Place left = place_of(reading, row, Landmark::kLeftEye), right = place_of(reading, row, Landmark::kRightEye);
  const Place left_corner = place_of(reading, row, Landmark::kLeftMouthCorner),
              right_corner = place_of(reading, row, Landmark::kRightMouthCorner);
  const Place mouth = between(left_corner, right_corner), eyes = between(left, right);
  const double distance = std::hypot(right.x - left.x, right.y - left.y);
  const double down = mouth.y - eyes.y;
  if (right.x <= left.x || right_corner.x <= left_corner.x || down < 0.5 * distance || down > 3 * distance) return 0;
  const torch::Tensor grey = image.mean(0).contiguous();
  const double skin = std::max(1e-3, std::min(contrast(grey, between(left, left_corner), 0.25 * distance),
                                              contrast(grey, between(right, right_corner), 0.25 * distance)));
  double least = contrast(grey, mouth, kMouthRadius * distance);
  if (!has_eyes) return least / skin;
  if (!is_seen(reading, row, Landmark::kLeftEye) || !is_seen(reading, row, Landmark::kRightEye)) return 0;
  for (const Place eye : {left, right}) least = std::min(least, contrast(grey, eye, kEyeRadius * distance));
  return least / skin;
}

PortraitClassifier load_reader() {
  return PortraitClassifier::load(find_shared_file("models/portrait-judge-128"), torch::kCPU);
}

// First lines of the sheet's rows of images.
std::vector<std::int64_t> tops_of(const torch::Tensor& sheet) {
  const torch::Tensor is_white = sheet.slice(2, kGap, kGap + kCell).amin({0, 2}).gt(0.999);  // [H], of the first column
  std::vector<std::int64_t> tops;
  std::int64_t begin = 0;
  for (std::int64_t line = 0; line <= sheet.size(1); ++line) {
    if (line < sheet.size(1) && !is_white[line].item<bool>()) continue;
    if (line - begin >= kCell) tops.push_back(begin);
    begin = line + 1;
  }
  return tops;
}

// Row `row` of the sheet's images, [6, 3, 128, 128].
torch::Tensor images_of(const torch::Tensor& sheet, std::int64_t top) {
  std::vector<torch::Tensor> images;
  for (std::size_t column = 0; column < kColumns; ++column) {
    const auto left = kGap + static_cast<std::int64_t>(column) * (kCell + kGap);
    images.push_back(sheet.slice(1, top, top + kCell).slice(2, left, left + kCell).unsqueeze(0));
  }
  return torch::avg_pool2d(torch::cat(images), {2, 2});
}

torch::Tensor read_sheet() {
  return model::image_to_tensor(model::read_image(find_shared_file("docs/pictures/demo.png")));
}

// Landmarks where the classifier found them, so that they can be erased.
classifier::Labels labels_at(const Reading& reading) {
  const std::int64_t count = reading.landmarks.size(0);
  const auto heads = static_cast<std::int64_t>(classifier::kHeadCount),
             numbers = static_cast<std::int64_t>(classifier::kNumberNames.size());
  return {torch::zeros({count, heads}, torch::kInt64),
          torch::zeros({count, numbers}),
          reading.landmarks.contiguous(),
          torch::ones({count, reading.landmarks.size(1)}),
          torch::empty({count, 0, 4, 2}),
          torch::zeros({count}, torch::kInt64)};
}

class SheetFaces : public testing::Test {
 protected:
  PortraitClassifier reader_ = load_reader();
};

TEST_F(SheetFaces, ContrastTellsRendersFromErasedOnes) {
  std::vector<portrait::Portrait> portraits;
  for (std::uint64_t person = 0; portraits.size() < 96; ++person) {
    const portrait::Portrait drawn = portrait::draw_portrait(
        portrait::image_seeds(portrait::PortraitSet::kValidation, 5000 + person, 0), portrait::Detail::k128);
    const auto landmarks = portrait::landmarks_of(drawn.who, drawn.now);
    if (std::all_of(landmarks.begin(), landmarks.end(), [](const auto& each) { return each.seen; })) {
      portraits.push_back(drawn);
    }
  }
  const torch::Tensor renders = classifier::portrait_images(portraits, kImageSide, 2);
  const classifier::ErasedImages erased =
      classifier::erase_landmarks(renders, classifier::labels_of(portraits), 1.0, 1, 0);
  const Reading whole = reader_.read(renders), without = reader_.read(erased.images);
  std::vector<double> of_whole, of_erased;
  for (std::int64_t i = 0; i < renders.size(0); ++i) {
    of_whole.push_back(face_contrast(renders[i], whole, i));
    of_erased.push_back(face_contrast(erased.images[i], without, i));
  }
  const auto share = [](const std::vector<double>& values) {
    return static_cast<double>(
               std::count_if(values.begin(), values.end(), [](double v) { return v > kLeastContrast; })) /
           static_cast<double>(values.size());
  };
  EXPECT_GT(share(of_whole), 0.95);
  EXPECT_LT(share(of_erased), 0.05);
}

TEST_F(SheetFaces, TunedImagesHaveEyesAndMouths) {
  const torch::Tensor sheet = read_sheet();
  const std::vector<std::int64_t> tops = tops_of(sheet);
  ASSERT_EQ(tops.size(), 3U);
  const torch::Tensor images = images_of(sheet, tops.back());
  const Reading reading = reader_.read(images);
  const torch::Tensor erased = classifier::erase_landmarks(images, labels_at(reading), 1.0, 1, 0).images;
  const Reading without = reader_.read(erased);
  for (std::size_t column = 0; column < kColumns; ++column) {
    const auto row = static_cast<std::int64_t>(column);
    const double found = face_contrast(images[row], reading, row, column != kSunglasses);
    EXPECT_GT(found, kLeastContrast) << column;
    if (column == kSunglasses) continue;
    EXPECT_LT(face_contrast(erased[row], without, row), kLeastContrast) << column;  // an eye, both or the mouth is gone
  }
}

}  // namespace
}  // namespace sdtune::train::evaluate
