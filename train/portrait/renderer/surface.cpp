#include "train/portrait/renderer/surface.h"

#include "train/portrait/renderer/face_paint.h"
#include "train/portrait/scene/palette.h"

namespace sdtune::train::portrait {
namespace {

constexpr Vec3 kWhite{0.85f, 0.85f, 0.85f};
constexpr Vec3 kDark{0.02f, 0.02f, 0.022f};

Vec3 hair_color(const Identity& who, Vec3 q) {
  Vec3 color = rgb_of(who.hair_color) * (1 + 0.30f * who.hair_shade);
  if (who.streak > 0) {
    const float center = 0.42f * static_cast<float>(who.streak - 2);
    if (std::abs(q.x - center) < 0.17f) color = rgb_of_hue(who.streak_hue);
  }
  const float strand = 0.5f + 0.5f * sine_of_turns(3.0f * q.x + 0.4f * q.y);
  return color * mix(0.75f, 1.1f, strand);
}

Vec3 clothes_color(const Body& body, Vec3 p) {
  const Context& now = body.now();
  const Vec3 base = rgb_of(now.clothes_color);
  const bool front = p.z > 0;
  switch (now.clothes) {
    case Clothes::kTShirt:
      return base;
    case Clothes::kStripedSweater:
      return sine_of_turns(p.y * 2.4f) > 0 ? base : (now.clothes_color == Color::kWhite ? kDark : kWhite);
    case Clothes::kHoodie:
      return front && std::abs(std::abs(p.x) - 0.16f) < 0.035f && p.y > -2.0f ? kWhite : base * 0.85f;
    case Clothes::kShirt: {
      const bool button = front && std::abs(p.x) < 0.045f && sine_of_turns(p.y * 3.5f) > 0.2f;
      const bool collar = p.y > -1.50f;
      return button ? kDark : (collar ? mix(base, kWhite, 0.45f) : base);
    }
    case Clothes::kJacket: {
      const float opening = 0.42f * (p.y + 2.35f) + 0.02f;
      if (!front || std::abs(p.x) > opening) return base * 0.8f;
      return std::abs(p.x) < 0.10f ? (now.clothes_color == Color::kRed ? rgb_of(Color::kBlue) : rgb_of(Color::kRed))
                                   : kWhite;
    }
  }
  return base;
}

Vec3 hat_color(const Context& now, Vec3 q) {
  const Vec3 base = rgb_of(now.hat_color);
  const bool banded = now.hat == Hat::kTopHat || now.hat == Hat::kWideHat;
  if (banded && q.y > 0.50f && q.y < 0.68f) return now.hat_color == Color::kBlack ? kWhite * 0.6f : kDark;
  if (now.hat == Hat::kBeanie && sine_of_turns(q.x * 5.0f) < -0.4f) return base * 0.7f;
  return base;
}

}  // namespace

Surface surface_at(const Body& body, Part part, Vec3 p) {
  const Vec3 q = body.to_head(p);
  const Identity& who = body.who();
  switch (part) {
    case Part::kSkin:
      return {p.y < -1.0f ? plain_skin(who) : painted_skin(body, q), 0.18f};
    case Part::kHair:
      return {hair_color(who, q), 0.30f};
    case Part::kBeard:
      return {rgb_of(who.hair_color) * (0.85f + 0.25f * who.hair_shade), 0.05f};
    case Part::kHat:
      return {hat_color(body.now(), q), 0.08f};
    case Part::kFrame:
      return {kDark, 0.4f};
    case Part::kLens:
      return {kDark * 0.6f, 0.9f};
    case Part::kClothes:
      return {clothes_color(body, body.to_body(p)), 0.05f};
    case Part::kEarring:
      return {earring_color(who.earrings), 0.8f};
  }
  return {};
}

}  // namespace sdtune::train::portrait
