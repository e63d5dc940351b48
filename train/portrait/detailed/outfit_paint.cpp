#include "train/portrait/detailed/outfit_paint.h"

#include "train/portrait/scene/palette.h"

namespace sdtune::train::portrait {
namespace {

constexpr Vec3 kWhite{0.82f, 0.82f, 0.82f};
constexpr Vec3 kDark{0.02f, 0.02f, 0.022f};

// Threads: neighbouring stitches catch the light differently.
float weave(float x, float y, float per_unit) {
  return value_noise(x * per_unit, y * per_unit, 91);
}

Vec3 jacket_color(const Context& now, Vec3 p, Vec3 base) {
  const float opening = 0.40f * (p.y + 2.35f) + 0.02f;
  const float x = std::abs(p.x);
  if (p.z < 0 || x > opening) {
    const float lapel = band(x - opening - 0.20f, 0.004f, 0.012f) * (p.z > 0 ? 1.0f : 0.0f);
    return base * (0.80f - 0.45f * lapel);
  }
  const Vec3 tie = now.clothes_color == Color::kRed ? rgb_of(Color::kBlue) : rgb_of(Color::kRed);
  const float knot = below(std::abs(p.y + 1.50f), 0.06f, 0.01f);
  const float width = 0.075f + 0.03f * saturate(-1.5f - p.y) + 0.02f * knot;
  const float stripe = sine_of_turns((p.x + p.y) * 6.0f) > 0.3f ? 0.75f : 1.0f;
  const Vec3 cloth = mix(kWhite, tie * stripe, below(x, width, 0.010f) * below(p.y, -1.43f, 0.01f));
  return cloth * mix(0.55f, 1.0f, smoothstep(0.0f, 0.05f, opening - x));  // the lapel's shadow
}

Vec3 clothes_color(const Context& now, Vec3 p) {
  const Vec3 base = rgb_of(now.clothes_color);
  const float x = std::abs(p.x);
  const bool front = p.z > 0;
  switch (now.clothes) {
    case Clothes::kTShirt: {
      const float tilted = p.y + 1.36f + 0.28f * (p.z + 0.17f);
      return base * (1.0f - 0.25f * band(tilted + 0.105f, 0.003f, 0.010f));
    }
    case Clothes::kStripedSweater: {
      const float stripe = smoothstep(-0.12f, 0.12f, sine_of_turns(p.y * 2.5f));
      return mix(now.clothes_color == Color::kWhite ? kDark : kWhite, base, stripe) *
             mix(0.90f, 1.04f, weave(p.x, p.y, 26));
    }
    case Clothes::kHoodie: {
      const float sway = 0.02f * sine_of_turns(p.y * 0.9f);
      const bool string = front && p.y > -2.0f && p.y < -1.35f;
      const float cord = string ? band(x - 0.155f - sway, 0.020f, 0.008f) : 0.0f;
      const float zip = front && p.y < -1.5f ? band(p.x, 0.008f, 0.010f) : 0.0f;
      return mix(base * (0.85f - 0.35f * zip), kWhite, cord);
    }
    case Clothes::kShirt: {
      const float collar = smoothstep(-1.56f, -1.54f, p.y - 0.1f * x);
      const float near = p.y * 3.2f - std::floor(p.y * 3.2f) - 0.5f;
      const float button = front && p.y < -1.55f ? below(length(p.x, near / 3.2f), 0.030f, 0.010f) : 0.0f;
      const float placket = front ? band(x - 0.085f, 0.004f, 0.010f) : 0.0f;
      const Vec3 cloth = mix(base, mix(base, kWhite, 0.45f), collar) * (1.0f - 0.30f * placket * (1.0f - collar));
      return mix(cloth, now.clothes_color == Color::kBlack ? kWhite * 0.6f : kDark, button);
    }
    case Clothes::kJacket:
      return jacket_color(now, p, base);
  }
  return base;
}

Vec3 hat_color(const Context& now, Vec3 q, float width) {
  const Vec3 base = rgb_of(now.hat_color);
  const bool banded = now.hat == Hat::kTopHat || now.hat == Hat::kWideHat;
  if (banded) {
    const float ribbon =
        band(q.y - 0.59f, 0.085f, 0.010f) * below(length(q.x / width, (q.z + 0.1f) / 1.14f), 0.86f, 0.02f);
    return mix(base, now.hat_color == Color::kBlack ? kWhite * 0.6f : kDark, ribbon);
  }
  if (now.hat == Hat::kBeanie) {
    const float rib = 0.5f + 0.5f * sine_of_turns(q.x * 6.5f / width);
    const float fold = q.y < 0.61f ? 0.86f : 1.0f;
    return base * (mix(0.62f, 1.08f, rib) * fold * mix(0.85f, 1.1f, weave(q.x, q.y + q.z, 24)));
  }
  if (now.hat == Hat::kCap) {
    const bool bill = q.z > 0.80f && q.y < 0.56f;
    const float seam =
        bill ? 0.0f : band(std::abs(q.x) - 0.42f * (1.1f - q.y) * width, 0.004f, 0.012f) + band(q.x, 0.004f, 0.012f);
    return base * ((bill ? 0.88f : 1.0f) * (1.0f - 0.35f * saturate(seam)));
  }
  return base;
}

}  // namespace

CoatedPoint clothes_at(const Figure& figure, Vec3 p, Vec3 normal) {
  CoatedPoint surface;
  surface.coat = Coat::kCloth;
  surface.albedo = clothes_color(figure.now(), p) * mix(0.93f, 1.04f, weave(p.x, p.y + p.z, 22));
  const float crease = value_noise(p.x * 2.3f + 0.8f * p.y, p.y * 1.7f - 0.6f * p.x, 92) - 0.5f;
  const float slant = value_noise(p.x * 4.5f - p.y, p.y * 3.0f + p.x, 93) - 0.5f;
  surface.normal = normalize(normal + Vec3{0.40f * crease + 0.18f * slant, 0.22f * slant, 0});
  surface.gloss = figure.now().clothes == Clothes::kJacket ? 0.10f : 0.05f;
  return surface;
}

CoatedPoint hat_at(const Figure& figure, Vec3 q, Vec3 normal) {
  CoatedPoint surface;
  surface.coat = Coat::kCloth;
  surface.albedo = hat_color(figure.now(), q, figure.face().width);
  surface.normal = normal;
  surface.gloss = figure.now().hat == Hat::kTopHat ? 0.30f : 0.07f;
  return surface;
}

CoatedPoint frame_at(const Figure& figure, Vec3, Vec3 normal) {
  const bool metal = figure.now().glasses == Glasses::kRound;
  CoatedPoint surface;
  surface.coat = Coat::kShiny;
  surface.albedo = metal ? Vec3{0.055f, 0.045f, 0.035f} : kDark;
  surface.normal = normal;
  surface.gloss = 0.8f;
  return surface;
}

CoatedPoint lens_at(const Figure& figure, Vec3 q, Vec3 normal) {
  CoatedPoint surface;
  surface.coat = Coat::kShiny;
  const float sky = smoothstep(-0.02f, 0.22f, q.y);
  surface.albedo = mix(Vec3{0.022f, 0.017f, 0.013f}, Vec3{0.006f, 0.006f, 0.008f}, sky);
  surface.normal = normal;
  surface.gloss = 0.30f;
  const float side = figure.light().x > 0 ? 1.0f : -1.0f;
  const float x = std::abs(q.x) - figure.face().eye_x;
  const float streak =
      band((q.x < 0 ? -x : x) * side - 0.10f - 0.6f * (q.y - 0.1f), 0.022f, 0.020f) * smoothstep(-0.06f, 0.14f, q.y);
  surface.glow = Vec3{0.20f, 0.23f, 0.28f} * (0.14f * sky) + Vec3{0.5f, 0.5f, 0.5f} * (0.45f * streak);
  return surface;
}

CoatedPoint earring_at(const Figure& figure, Vec3, Vec3 normal) {
  CoatedPoint surface;
  surface.coat = Coat::kShiny;
  surface.albedo = earring_color(figure.who().earrings);
  surface.normal = normal;
  surface.gloss = 0.9f;
  return surface;
}

Vec3 glass_reflection(const Figure& figure, Vec3 q) {
  const Glasses glasses = figure.now().glasses;
  if (glasses == Glasses::kNone || glasses == Glasses::kSunglasses) return {};
  const float z = figure.outfit().glasses_z();
  if (q.z > z + 0.02f) return {};
  const Vec3 view = q - figure.camera();
  const float s = (z - figure.camera().z) / view.z;
  const float x = figure.camera().x + view.x * s, y = figure.camera().y + view.y * s;
  const float outline = figure.outfit().lens_outline(x, y);
  if (outline > 0) return {};
  const float in = std::abs(x) - figure.face().eye_x;
  const float side = figure.light().x > 0 ? 1.0f : -1.0f;
  const float across = (x < 0 ? -in : in) * side - 0.7f * (y - 0.065f);
  const float streaks = band(across - 0.085f, 0.018f, 0.012f) + 0.6f * band(across - 0.145f, 0.007f, 0.010f);
  const float sky = smoothstep(0.0f, 0.25f, y);
  return Vec3{0.90f, 0.95f, 1.0f} * (0.10f * streaks * smoothstep(-0.10f, 0.10f, y) + 0.022f * sky);
}

}  // namespace sdtune::train::portrait
