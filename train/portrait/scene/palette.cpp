#include "train/portrait/scene/palette.h"

namespace sdtune::train::portrait {

Vec3 plain_skin(const Identity& who) {
  const Vec3 light{0.80f, 0.52f, 0.39f}, middle{0.42f, 0.20f, 0.11f}, dark{0.085f, 0.038f, 0.022f};
  const float t = who.skin_tone;
  const Vec3 tone = t < 0.5f ? mix(light, middle, 2 * t) : mix(middle, dark, 2 * t - 1);
  return {tone.x, tone.y * (1 - 0.06f * who.skin_warmth), tone.z * (1 - 0.12f * who.skin_warmth)};
}

Vec3 iris_color(float hue) {
  const Vec3 brown{0.13f, 0.05f, 0.015f}, green{0.05f, 0.30f, 0.10f}, blue{0.05f, 0.22f, 0.62f},
      grey{0.25f, 0.30f, 0.34f};
  return hue < 0.4f ? brown : (hue < 0.6f ? green : (hue < 0.85f ? blue : grey));
}

Vec3 rgb_of_hue(float hue) {
  const float red = 0.5f + 0.5f * cosine_of_turns(hue);
  const float green = 0.5f + 0.5f * cosine_of_turns(hue - 1.0f / 3);
  const float blue = 0.5f + 0.5f * cosine_of_turns(hue - 2.0f / 3);
  return {0.9f * red * red, 0.9f * green * green, 0.9f * blue * blue};
}

Vec3 earring_color(int earrings) {
  static constexpr Vec3 kColors[] = {{0.90f, 0.60f, 0.10f}, {0.80f, 0.02f, 0.06f}, {0.02f, 0.62f, 0.62f}};
  return kColors[earrings - 1];
}

}  // namespace sdtune::train::portrait
