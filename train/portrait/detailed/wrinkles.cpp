#include "train/portrait/detailed/wrinkles.h"

namespace sdtune::train::portrait {
namespace {

// How deep the skin lies at v, which counts across a line: 1 in it, -0.4 on the swelling beside it.
float line_profile(float v, float half_width) {
  return band(v, 0.25f * half_width, half_width) - 0.45f * band(v - 2.4f * half_width, 0.4f * half_width, half_width);
}

float forehead(Vec3 q, float x) {
  float depth = 0;
  for (int i = 0; i < 4; ++i) {
    const float at = 0.420f + 0.078f * static_cast<float>(i);
    const float wave = 0.012f * sine_of_turns(1.6f * q.x + 0.31f * static_cast<float>(i)) - 0.05f * x * x;
    const float reach = below(x, 0.34f - 0.03f * static_cast<float>(i), 0.10f);
    depth += (i == 3 ? 0.5f : 1.0f) * reach * line_profile(q.y - at - wave, 0.011f);
  }
  return depth;
}

// Fans out from the eye's outer corner.
float crows_feet(const FaceMeasures& face, Vec3 q, float x) {
  const float along = x - face.eye_x - face.eye_half_width - 0.03f;
  if (along < -0.02f || along > 0.20f) return 0;
  float depth = 0;
  for (int i = -1; i <= 1; ++i) {
    const float y = q.y - face.eye_y - 0.01f - static_cast<float>(i) * (0.028f + 0.38f * along);
    depth += smoothstep(-0.01f, 0.03f, along) * below(along, 0.13f, 0.05f) * line_profile(y, 0.009f);
  }
  return depth;
}

// From the wing of the nose around the corner of the mouth.
float nasolabial(const FaceMeasures& face, Vec3 q, float x) {
  const float top = face.nose_y + 0.02f, bottom = face.mouth_y - 0.05f;
  const float t = (top - q.y) / (top - bottom);
  if (t < -0.1f || t > 1.2f) return 0;
  const float corner = most(face.mouth_half_width, 0.22f) + 0.065f;
  const float line = mix(0.125f * face.nose_width, corner, 1.0f - (1.0f - t) * (1.0f - t) * (t < 1 ? 1.0f : -1.0f));
  return smoothstep(-0.05f, 0.12f, t) * below(t, 0.95f, 0.20f) * line_profile(x - line, 0.016f);
}

// From the corners of the mouth to the chin, and under the eyes.
float sagging(const FaceMeasures& face, Vec3 q, float x) {
  const float t = (face.mouth_y - 0.02f - q.y) / 0.20f;
  const float marionette = smoothstep(0.0f, 0.2f, t) * below(t, 0.8f, 0.3f) *
                           line_profile(x - face.mouth_half_width - 0.035f - 0.05f * t, 0.013f);
  const float e = (x - face.eye_x + 0.02f) / (face.eye_half_width * 1.05f);
  const float bag = q.y - face.eye_y + face.lower_lid + 0.085f - 0.055f * e * e;
  return marionette + below(std::abs(e), 0.85f, 0.25f) * line_profile(bag, 0.013f);
}

}  // namespace

void paint_wrinkles(const FaceMeasures& face, Vec3 q, CoatedPoint& surface) {
  if (q.z < 0.15f) return;
  const float x = std::abs(q.x), age = face.wrinkles;
  float depth = 0;
  if (age > 0 && q.y > 0.3f) depth += age * forehead(q, x);
  const float fan = saturate(age + 0.45f * face.smile);
  if (fan > 0) depth += 0.9f * fan * crows_feet(face, q, x);
  depth += (0.10f + 0.75f * age + 0.50f * face.smile) * nasolabial(face, q, x);
  if (age > 0) depth += 0.8f * age * sagging(face, q, x);
  if (age > 0) {  // frown lines over the nose
    depth += 0.7f * age * band(q.y - 0.27f, 0.05f, 0.04f) * line_profile(x - 0.050f, 0.010f);
  }
  surface.kept *= clamp(1.0f - 0.58f * depth, 0.30f, 1.35f);
  surface.albedo = mix(surface.albedo, surface.albedo * Vec3{0.80f, 0.62f, 0.58f}, saturate(0.7f * depth));
}

}  // namespace sdtune::train::portrait
