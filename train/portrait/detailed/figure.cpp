#include "train/portrait/detailed/figure.h"

#include "train/portrait/scene/head_place.h"

namespace sdtune::train::portrait {
namespace {

constexpr float kUnderHat = 0.56f;  // no head above it where there is a hat

}  // namespace

Figure::Figure(const Identity& who, const Context& now)
    : who_(who),
      now_(now),
      face_(who, now),
      head_turn_(Rotation::from_turns(now.yaw, now.pitch, now.roll)),
      body_turn_(Rotation::from_turns(now.body_yaw, 0, 0)),
      head_(face_),
      hair_(who, now, face_),
      outfit_(who, now, face_),
      camera_(head_turn_.rotate(Vec3{-now.shift_x, kCameraY - now.shift_y, kCameraZ})),
      light_(head_turn_.rotate(now.light)) {}

template <typename Visit>
void Figure::visit_parts(Vec3x4 p, Visit&& visit) const {
  const Vec3x4 q = head_turn_.rotate(p);
  const Mask4 upper = p.y > -1.25f, lower = p.y < -0.45f, anywhere = p.y < kNowhere;
  Float4 skull = kNowhere;
  if (any(upper)) {
    skull = head_.skull(q);
    Float4 skin = head_.distance(q);
    if (outfit_.has_hat()) skin = most(skin, q.y - kUnderHat);
    visit(Part::kSkin, skin, upper);
    if (hair_.has_beard()) visit(Part::kBeard, hair_.beard(q, skin), upper);
    if (outfit_.has_hat()) visit(Part::kHat, outfit_.hat(q), upper);
    if (outfit_.has_glasses()) {
      visit(Part::kFrame, outfit_.frame(q), upper);
      visit(Part::kLens, outfit_.lens(q), upper);
    }
    if (outfit_.has_earrings()) visit(Part::kEarring, outfit_.earring(q), upper);
  }
  if (hair_.has_hair()) visit(Part::kHair, hair_.hair(q, skull), anywhere);
  if (any(lower)) {
    visit(Part::kSkin, head_.neck(p), lower);
    visit(Part::kClothes, outfit_.clothes(to_body(p)), lower);
  }
}

Float4 Figure::distance(Vec3x4 p) const {
  Float4 nearest = kNowhere;
  visit_parts(p, [&nearest](Part, Float4 d, Mask4 here) { nearest = select(here, least(nearest, d), nearest); });
  return nearest;
}

std::array<Part, 4> Figure::parts_at(Vec3x4 p) const {
  Float4 nearest = kNowhere;
  std::array<Part, 4> found{};
  visit_parts(p, [&](Part part, Float4 d, Mask4 here) {
    const Mask4 nearer = here & (d < nearest);
    nearest = select(nearer, d, nearest);
    for (int lane = 0; lane < 4; ++lane) {
      if (nearer.at(lane)) found[static_cast<std::size_t>(lane)] = part;
    }
  });
  return found;
}

}  // namespace sdtune::train::portrait
