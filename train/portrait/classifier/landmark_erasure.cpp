#include "train/portrait/classifier/landmark_erasure.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "model/core/random.h"

namespace sdtune::train::classifier {
namespace {

using portrait::Landmark;

constexpr double kNoLabel = std::numeric_limits<double>::quiet_NaN();
// Radii as shares of the distance between the eyes, which is about twice an open eye's width.
constexpr double kEyeRadius = 0.36;
constexpr double kMouthRadius = 0.45;
constexpr double kMouthReach = 0.80;     // and as a share of the mouth's width, where that is more
constexpr double kSoftEdge = 0.30;       // of the radius, over which the image comes back
constexpr std::int64_t kBlurShare = 4;   // of the side, that is averaged into the colours around
constexpr std::uint64_t kErasure = 977;  // apart from the random numbers of augment

// Random numbers of an image.
enum Draw : std::uint64_t { kIsErased, kWhatIsErased, kDraws };
enum class Erased : std::uint8_t { kLeftEye, kRightEye, kEyes, kMouth, kKinds };

struct Disc {
  double x = 0, y = 0, radius = 0;  // in half images
};

double unit_draw(std::uint64_t seed, std::uint64_t step, std::int64_t image, Draw draw) {
  const auto at = static_cast<std::uint64_t>(image) * kDraws + draw;
  return model::draw_uniform({seed ^ kErasure, model::Draw::kDropout, step, at, false});
}

// Places of one image's landmarks, in half images.
class Places {
 public:
  explicit Places(const torch::Tensor& row) : row_(row.accessor<float, 2>()) {}
  double x(Landmark landmark) const { return row_[static_cast<std::int64_t>(landmark)][0]; }
  double y(Landmark landmark) const { return row_[static_cast<std::int64_t>(landmark)][1]; }
  double distance(Landmark a, Landmark b) const { return std::hypot(x(a) - x(b), y(a) - y(b)); }

 private:
  torch::TensorAccessor<float, 2> row_;
};

std::vector<Landmark> landmarks_in(Erased kind) {
  switch (kind) {
    case Erased::kLeftEye:
      return {Landmark::kLeftEye};
    case Erased::kRightEye:
      return {Landmark::kRightEye};
    case Erased::kEyes:
      return {Landmark::kLeftEye, Landmark::kRightEye};
    default:
      return {Landmark::kLeftMouthCorner, Landmark::kRightMouthCorner};
  }
}

std::vector<Disc> discs_of(Erased kind, const Places& at) {
  const double eyes = at.distance(Landmark::kLeftEye, Landmark::kRightEye);
  std::vector<Disc> discs;
  if (kind == Erased::kMouth) {
    const Landmark left = Landmark::kLeftMouthCorner, right = Landmark::kRightMouthCorner;
    const double radius = std::max(kMouthRadius * eyes, kMouthReach * at.distance(left, right));
    return {{(at.x(left) + at.x(right)) / 2, (at.y(left) + at.y(right)) / 2, radius}};
  }
  for (const Landmark eye : landmarks_in(kind)) discs.push_back({at.x(eye), at.y(eye), kEyeRadius * eyes});
  return discs;
}

// [1, S, S]: 1 in the disc, falling to 0 outside.
torch::Tensor mask_of(const Disc& disc, std::int64_t side) {
  const torch::Tensor middles = (torch::arange(side) + 0.5) * (2.0 / static_cast<double>(side)) - 1.0;
  const torch::Tensor x = (middles - disc.x).view({1, 1, side}), y = (middles - disc.y).view({1, side, 1});
  const torch::Tensor radius = (x.square() + y.square()).sqrt() / disc.radius;
  return ((1.0 + kSoftEdge - radius) / kSoftEdge).clamp(0.0, 1.0).to(torch::kFloat32);
}

// The mean over a window cut at the borders, of columns and then of rows: a square window's cost grows with its area.
torch::Tensor surroundings(const torch::Tensor& image) {
  const std::int64_t window = image.size(2) / kBlurShare | 1, half = window / 2;
  const torch::Tensor columns = torch::avg_pool2d(image.unsqueeze(0), {window, 1}, 1, {half, 0}, /*ceil_mode=*/false,
                                                  /*count_include_pad=*/false);
  return torch::avg_pool2d(columns, {1, window}, 1, {0, half}, /*ceil_mode=*/false, /*count_include_pad=*/false)
      .squeeze(0);
}

void hide_number(Labels& labels, std::int64_t image, std::string_view name) {
  const auto number = std::find(kNumberNames.begin(), kNumberNames.end(), name) - kNumberNames.begin();
  labels.numbers[image][number].fill_(kNoLabel);
}

// A mark of which a point lies in the disc can no longer be told.
void hide_marks(Labels& labels, std::int64_t image, const Disc& disc) {
  for (std::int64_t mark = 0; mark < labels.mark_places.size(1); ++mark) {
    const torch::Tensor places = labels.mark_places[image][mark];  // NaN: lies nowhere
    const torch::Tensor distance =
        ((places.select(1, 0) - disc.x).square() + (places.select(1, 1) - disc.y).square()).sqrt();
    if (!distance.lt((1.0 + kSoftEdge) * disc.radius).any().item<bool>()) continue;
    const Head head = head_of(static_cast<portrait::Mark>(mark));
    labels.classes[image][static_cast<std::int64_t>(head)].fill_(kHidden);
  }
}

void hide(Labels& labels, std::int64_t image, Erased kind) {
  for (const Landmark landmark : landmarks_in(kind)) {
    labels.landmarks_seen[image][static_cast<std::int64_t>(landmark)].fill_(0.0);
  }
  labels.classes[image][static_cast<std::int64_t>(Head::kExpression)].fill_(kHidden);
  if (kind == Erased::kMouth) {
    labels.classes[image][static_cast<std::int64_t>(Head::kFacialHair)].fill_(kHidden);
    return hide_number(labels, image, "lip_size");
  }
  labels.classes[image][static_cast<std::int64_t>(Head::kGlasses)].fill_(kHidden);
  hide_number(labels, image, "eye_size");
  hide_number(labels, image, "eye_distance");
}

}  // namespace

ErasedImages erase_landmarks(const torch::Tensor& images, const Labels& labels, double share, std::uint64_t seed,
                             std::uint64_t step) {
  if (labels.landmarks.numel() == 0) throw std::invalid_argument("these images have no landmarks to erase");
  const torch::NoGradGuard no_grad;
  ErasedImages erased{images.clone(), labels};
  erased.labels.classes = labels.classes.clone();
  erased.labels.numbers = labels.numbers.clone();
  erased.labels.landmarks_seen = labels.landmarks_seen.clone();
  for (std::int64_t i = 0; i < images.size(0); ++i) {
    if (unit_draw(seed, step, i, kIsErased) >= share) continue;
    constexpr auto kKinds = static_cast<double>(Erased::kKinds);
    const auto kind = static_cast<Erased>(static_cast<int>(unit_draw(seed, step, i, kWhatIsErased) * kKinds));
    torch::Tensor image = erased.images[i];
    const torch::Tensor around = surroundings(image);
    for (const Disc& disc : discs_of(kind, Places(labels.landmarks[i]))) {
      image.copy_(torch::lerp(image, around, mask_of(disc, image.size(2))));
      hide_marks(erased.labels, i, disc);
    }
    hide(erased.labels, i, kind);
  }
  return erased;
}

}  // namespace sdtune::train::classifier
