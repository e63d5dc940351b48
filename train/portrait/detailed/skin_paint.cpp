#include "train/portrait/detailed/skin_paint.h"

#include "train/portrait/detailed/eye_paint.h"
#include "train/portrait/detailed/hair_paint.h"
#include "train/portrait/detailed/mark_paint.h"
#include "train/portrait/detailed/mouth_paint.h"
#include "train/portrait/detailed/wrinkles.h"
#include "train/portrait/scene/palette.h"

namespace sdtune::train::portrait {
namespace {

// Cheeks, nose and ears are redder, the eye's surroundings darker, the skin nowhere quite even.
void paint_regions(const FaceMeasures& face, Vec3 q, CoatedPoint& surface) {
  const float x = std::abs(q.x);
  const float blush = hill(x - 0.38f, q.y + 0.20f, 0.28f, 0.22f);
  const float nose = hill(q.x, q.y - face.nose_y, 0.15f, 0.14f) * smoothstep(0.70f, 0.85f, q.z);
  const float ear = smoothstep(0.64f * face.width, 0.72f * face.width, x) * below(std::abs(q.y), 0.24f, 0.05f);
  surface.albedo = mix(surface.albedo, surface.albedo * Vec3{1.06f, 0.74f, 0.72f},
                       saturate(0.55f * blush + 0.45f * nose + 0.45f * ear));
  const float orbit = hill(x - face.eye_x, q.y - face.eye_y + 0.01f, 0.26f, 0.19f);
  surface.albedo = mix(surface.albedo, surface.albedo * Vec3{0.84f, 0.72f, 0.74f}, 0.60f * orbit);
  const float uneven = value_noise(q.x * 7.0f, q.y * 7.0f + q.z * 5.0f, 11);
  const float pores = value_noise(q.x * 26.0f, q.y * 26.0f, 12);
  surface.albedo = surface.albedo * (0.955f + 0.06f * uneven + 0.03f * pores);
  // Forehead, nose and chin shine more.
  surface.gloss = 0.20f + 0.16f * hill(q.x, q.y - 0.45f, 0.40f, 0.30f) + 0.22f * nose +
                  0.06f * hill(q.x, q.y + 0.78f, 0.2f, 0.2f) - 0.05f * pores;
}

// Nostrils, and the groove between nose and lip.
void paint_nose(const FaceMeasures& face, Vec3 q, CoatedPoint& surface) {
  if (q.z < 0.55f) return;
  const float w = face.nose_width;
  const float nostril = hill(std::abs(q.x) - 0.056f * w, q.y - (face.nose_y - 0.076f), 0.038f * w, 0.022f);
  surface.albedo = mix(surface.albedo, surface.albedo * Vec3{0.16f, 0.08f, 0.07f}, saturate(1.3f * nostril));
  surface.gloss *= 1.0f - saturate(1.3f * nostril);
  const float wing =
      band(length((std::abs(q.x) - 0.088f * w) / w, q.y - face.nose_y + 0.015f) - 0.068f, 0.004f, 0.014f) *
      smoothstep(0.10f * w, 0.14f * w, std::abs(q.x)) * below(q.y, face.nose_y + 0.03f, 0.03f);
  surface.kept *= 1.0f - 0.28f * wing;
  const float top = face.nose_y - 0.10f, bottom = face.mouth_y + face.upper_lip;
  const float between = smoothstep(bottom - 0.01f, bottom + 0.03f, q.y) * below(q.y, top, 0.02f);
  surface.kept *= 1.0f - 0.16f * between * band(q.x, 0.010f, 0.020f);
  surface.kept *= 1.0f + 0.10f * between * band(std::abs(q.x) - 0.042f, 0.006f, 0.018f);
}

}  // namespace

CoatedPoint skin_at(const Figure& figure, Vec3 q, Vec3 normal) {
  CoatedPoint surface;
  surface.albedo = plain_skin(figure.who());
  surface.normal = normal;
  surface.coat = Coat::kSkin;
  surface.gloss = 0.2f;
  paint_regions(figure.face(), q, surface);
  if (q.z > 0.05f) {
    paint_marks(figure.who(), q, surface);
    paint_wrinkles(figure.face(), q, surface);
    paint_nose(figure.face(), q, surface);
  }
  paint_beard_on_skin(figure, q, surface);
  if (q.z > 0.05f) {
    paint_mouth(figure, q, surface);
    paint_eyes(figure, q, surface);
    paint_brows(figure, q, surface);
  }
  paint_scalp(figure, q, surface);
  return surface;
}

}  // namespace sdtune::train::portrait
