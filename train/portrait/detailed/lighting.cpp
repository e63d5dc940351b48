#include "train/portrait/detailed/lighting.h"

namespace sdtune::train::portrait {
namespace {

// What every coat shares of one point.
struct Shades {
  Vec3 sun, sky, rim_color;
  Vec3 rim;  // direction to the rim light
  float facing, rim_facing;
};

// The rim light stands behind, on the other side than the key light.
Vec3 rim_direction(const Context& now) {
  return normalize(Vec3{now.light.x > 0 ? -1.0f : 1.0f, 0.45f, -0.75f});
}

Vec3 sky_color(const Context& now) {
  switch (now.place) {
    case Place::kForest:
      return {0.42f, 0.50f, 0.40f};
    case Place::kCityNight:
      return {0.40f, 0.38f, 0.52f};
    case Place::kBricks:
      return {0.50f, 0.45f, 0.44f};
    default:
      return {0.45f, 0.48f, 0.54f};
  }
}

Shades shades(const Context& now, const CoatedPoint& surface, const LightAt& light) {
  Shades s;
  s.sun = {1.06f + 0.10f * now.warmth, 1.0f, 0.94f - 0.14f * now.warmth};
  s.facing = dot(surface.normal, now.light);
  const float up = 0.56f + 0.40f * surface.normal.y + 0.10f * surface.normal.z;
  // Light that the ground and the clothes give back is warm.
  s.sky =
      sky_color(now) * (up * light.open) + Vec3{0.09f, 0.065f, 0.05f} * ((0.6f - 0.4f * surface.normal.y) * light.open);
  s.rim = rim_direction(now);
  s.rim_facing = saturate(dot(surface.normal, s.rim));
  s.rim_color = now.place == Place::kCityNight ? Vec3{0.95f, 0.60f, 0.28f} : Vec3{0.62f, 0.68f, 0.78f};
  return s;
}

float power(float v, int doublings) {
  for (int i = 0; i < doublings; ++i) v = v * v;
  return v;
}

// Blinn's lobe of the exponent 2^doublings, with the glancing light's gain.
float lobe(const CoatedPoint& surface, Vec3 to_light, Vec3 view, int doublings) {
  const Vec3 half = normalize(to_light - view);
  return power(saturate(dot(surface.normal, half)), doublings);
}

float glancing(const CoatedPoint& surface, Vec3 view) {
  const float c = 1.0f - saturate(-dot(surface.normal, view));
  return c * c * c;
}

// Light goes a way under the skin: red the farthest, so the border of the shadow is warm.
Vec3 skin(const CoatedPoint& surface, const LightAt& light, const Shades& s) {
  const auto wrapped = [&](float wrap, float softening) {
    const float facing = saturate((s.facing + wrap) / (1.0f + wrap));
    const float shadow = mix(light.reaching, root(light.reaching), softening);
    return facing * shadow;
  };
  const Vec3 diffuse{wrapped(0.28f, 0.75f), wrapped(0.13f, 0.35f), wrapped(0.09f, 0.20f)};
  const float key = saturate(s.facing) * light.reaching;
  const float shine = surface.gloss * (1.0f + 2.5f * glancing(surface, light.view));
  const float rim = s.rim_facing * (0.25f + 0.75f * glancing(surface, light.view)) * light.open;
  Vec3 color = surface.albedo * (s.sun * diffuse * 1.02f + s.sky) + surface.albedo * s.rim_color * (0.45f * rim);
  color = color + s.rim_color * (0.10f * rim);
  return color * surface.kept + s.sun * (shine * key * surface.kept);
}

// Film's shoulder: white hair and bright cloth keep their folds.
float shouldered(float v) {
  constexpr float kKnee = 0.55f;
  return v < kKnee ? v : kKnee + (v - kKnee) / (1.0f + 1.15f * (v - kKnee));
}

Vec3 light_on(const Context& now, const CoatedPoint& surface, const LightAt& light) {
  const Shades s = shades(now, surface, light);
  const float key = saturate(s.facing) * light.reaching;
  const float edge = glancing(surface, light.view);
  const float rim = s.rim_facing * (0.3f + 0.7f * edge) * light.open;
  switch (surface.coat) {
    case Coat::kSkin: {
      // Two lobes: a broad sheen and a narrow, oily one.
      const float broad = lobe(surface, now.light, light.view, 3), narrow = lobe(surface, now.light, light.view, 6);
      CoatedPoint shaded = surface;
      shaded.gloss = surface.gloss * (0.42f * broad + 0.85f * narrow);
      return skin(shaded, light, s) + surface.glow * mix(0.45f, 1.0f, light.reaching);
    }
    case Coat::kStrands: {
      // Strands shine in a band across them (Kajiya and Kay, 1989); twice, the second time in their own colour.
      const float along = dot(surface.tangent, now.light);
      const Vec3 half = normalize(now.light - light.view);
      const float th = dot(surface.tangent, half);
      const float first = power(root(saturate(1.0f - (th - 0.06f) * (th - 0.06f))), 6);
      const float second = power(root(saturate(1.0f - (th + 0.14f) * (th + 0.14f))), 4);
      const float diffuse =
          root(saturate(1.0f - along * along)) * saturate((s.facing + 0.35f) / 1.35f) * light.reaching;
      const float lit_side = saturate((s.facing + 0.20f) / 1.2f) * light.reaching * surface.gloss;
      const Vec3 base = surface.albedo * (s.sun * (0.85f * diffuse + 0.30f * key) + s.sky * 0.95f);
      const Vec3 shine = s.sun * (0.13f * first * lit_side) + surface.albedo * (s.sun * (1.1f * second * lit_side));
      const Vec3 back = (surface.albedo * 1.4f + Vec3{0.05f, 0.05f, 0.05f}) * s.rim_color * (0.9f * rim);
      return (base + shine + back) * surface.kept;
    }
    case Coat::kCloth: {
      const float broad = surface.gloss * lobe(surface, now.light, light.view, 4) * key;
      return (surface.albedo * (s.sun * (0.97f * key) + s.sky + s.rim_color * (0.35f * rim)) + s.sun * broad) *
             surface.kept;
    }
    case Coat::kShiny: {
      const float narrow = lobe(surface, now.light, light.view, 6), broad = lobe(surface, now.light, light.view, 3);
      const Vec3 base = surface.albedo * (s.sun * (0.9f * key) + s.sky + s.rim_color * (0.5f * rim));
      const Vec3 tint = mix(Vec3{1, 1, 1}, surface.albedo * 1.2f, 0.5f);
      return base + s.sun * tint * (surface.gloss * (1.1f * narrow + 0.15f * broad) * most(key, 0.15f)) + surface.glow +
             sky_color(now) * (0.18f * surface.gloss * edge);
    }
  }
  return {};
}

}  // namespace

Vec3 lit_color(const Context& now, const CoatedPoint& surface, const LightAt& light) {
  const Vec3 color = light_on(now, surface, light);
  return {shouldered(color.x), shouldered(color.y), shouldered(color.z)};
}

}  // namespace sdtune::train::portrait
