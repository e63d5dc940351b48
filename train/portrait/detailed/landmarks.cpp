#include "train/portrait/detailed/landmarks.h"

#include <algorithm>

#include "train/portrait/detailed/figure.h"
#include "train/portrait/detailed/mark_paint.h"
#include "train/portrait/scene/head_place.h"
#include "train/portrait/scene/ray_march.h"

namespace sdtune::train::portrait {
namespace {

constexpr int kDescents = 80;         // steps from in front of the face to the skin
constexpr float kFront = 1.25f;       // z in front of every nose
constexpr float kSkinLimit = 0.002f;  // a distance that counts as on the skin
constexpr float kNearer = 3.0f;       // before the face nothing is further away from it
constexpr float kSameDepth = 0.07f;   // along the ray, of a point and what is met there
constexpr float kEarringDepth = 0.2f;
constexpr MarchLimits kLookLimits{.steps = 160, .hit = 0.004f, .trust = 0.85f, .least_step = 0.006f};

Vec3 camera_of(const Context& now) {
  return {-now.shift_x, kCameraY - now.shift_y, kCameraZ};
}

// The skin at four places of the face, x and y in head coordinates; in the world.
std::array<Vec3, 4> skin_points(const Figure& figure, const std::array<Vec2, 4>& places) {
  const HeadShape head(figure.face());
  Vec3x4 q{Float4(places[0].x, places[1].x, places[2].x, places[3].x),
           Float4(places[0].y, places[1].y, places[2].y, places[3].y), kFront};
  for (int step = 0; step < kDescents; ++step) {
    const Float4 d = head.distance(q);
    const Mask4 outside = d > kSkinLimit;
    if (!any(outside)) break;
    q.z = select(outside, q.z - 0.8f * d, q.z);
  }
  std::array<Vec3, 4> points;
  for (int lane = 0; lane < 4; ++lane) points[static_cast<std::size_t>(lane)] = figure.from_head(point(q, lane));
  return points;
}

// Which of four points of the world are what the camera meets first on the way to them, there a part of `parts`.
template <typename Parts>
std::array<bool, 4> seen(const Figure& figure, const std::array<Vec3, 4>& points, float same_depth, Parts&& parts) {
  const Vec3 eye = camera_of(figure.now());
  const auto lanes = [&points](float Vec3::*axis) {
    return Float4(points[0].*axis, points[1].*axis, points[2].*axis, points[3].*axis);
  };
  const Vec3x4 ways = Vec3x4{lanes(&Vec3::x), lanes(&Vec3::y), lanes(&Vec3::z)} - eye;
  const Float4 far = length(ways);
  const Rays rays{eye, normalize(ways)};
  const Hits hits = march(figure, rays, {far - kNearer, far + same_depth}, kLookLimits);
  const std::array<Part, 4> met = figure.parts_at(rays.at(hits.t));
  std::array<bool, 4> result{};
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto lane = static_cast<int>(i);
    result[i] = hits.found.at(lane) && parts(met[i]) && hits.t.at(lane) > far.at(lane) - same_depth;
  }
  return result;
}

LandmarkPlace place_in_image(const Context& now, Vec3 p, bool is_seen) {
  const Vec3 eye = camera_of(now);
  const float scale = kCameraZ / (kCameraZ - p.z) * now.zoom / kHalfHeight;
  return {(p.x - eye.x) * scale, (p.y - eye.y) * scale, is_seen};
}

// Of points of the world of which each is seen where the camera meets one of `parts` there.
template <typename Parts>
std::array<LandmarkPlace, 4> places_of_points(const Figure& figure, const std::array<Vec3, 4>& points, float same_depth,
                                              Parts&& parts) {
  const std::array<bool, 4> are_seen = seen(figure, points, same_depth, parts);
  std::array<LandmarkPlace, 4> result;
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = place_in_image(figure.now(), points[i], are_seen[i]);
  return result;
}

// A beard grows over a mark, but not over a landmark.
std::array<LandmarkPlace, 4> places_of(const Figure& figure, const std::array<Vec2, 4>& places, bool under_beard) {
  return places_of_points(figure, skin_points(figure, places), kSameDepth, [under_beard](Part part) {
    return part == Part::kSkin || (under_beard && part == Part::kBeard);
  });
}

std::array<LandmarkPlace, 4> earring_places(const Figure& figure) {
  const Vec3 right = figure.outfit().earring_middle(), left{-right.x, right.y, right.z};
  const Vec3 at_right = figure.from_head(right), at_left = figure.from_head(left);
  return places_of_points(figure, {at_left, at_right, at_left, at_right}, kEarringDepth,
                          [](Part part) { return part == Part::kEarring; });
}

}  // namespace

std::array<LandmarkPlace, kLandmarkNames.size()> landmarks_of(const Identity& who, const Context& now) {
  const Figure figure(who, now);
  const FaceMeasures& face = figure.face();
  const float w = face.mouth_half_width;
  const float corner_y = face.mouth_y - face.over_mouth(w, face.mouth_y);  // where the mouth's line ends
  const auto pairs =
      places_of(figure, {Vec2{-face.eye_x, face.eye_y}, {face.eye_x, face.eye_y}, {-w, corner_y}, {w, corner_y}}, true);
  const Vec2 tip{0, face.nose_y};
  return {pairs[0], pairs[1], places_of(figure, {tip, tip, tip, tip}, true)[0], pairs[2], pairs[3]};
}

std::optional<std::array<LandmarkPlace, 4>> mark_places(Mark mark, const Identity& who, const Context& now) {
  switch (mark) {
    case Mark::kBirthmark:
      if (who.birthmark > 0) return places_of(Figure(who, now), birthmark_points(who), false);
      break;
    case Mark::kMole:
      if (who.mole > 0) return places_of(Figure(who, now), mole_points(who), false);
      break;
    case Mark::kScar:
      if (who.scar) return places_of(Figure(who, now), scar_points(), false);
      break;
    case Mark::kEarrings:
      if (who.earrings > 0) return earring_places(Figure(who, now));
      break;
  }
  return std::nullopt;
}

bool shows_mark(Mark mark, const Identity& who, const Context& now) {
  const auto places = mark_places(mark, who, now);
  if (!places) return true;
  const auto seen = std::count_if(places->begin(), places->end(), [](const LandmarkPlace& at) { return at.seen; });
  return seen >= (mark == Mark::kEarrings ? 1 : 2);
}

}  // namespace sdtune::train::portrait
