#include "train/portrait/detailed/head_shape.h"

namespace sdtune::train::portrait {

HeadShape::HeadShape(const FaceMeasures& face)
    : face_(face),
      skull_(Ellipsoid::of({0, 0.30f, -0.10f}, {0.68f * face.width, 0.78f, 0.84f})),
      jaw_(Ellipsoid::of({0, -0.24f * face.length, 0.12f}, {0.565f * face.jaw, 0.65f * face.length, 0.58f})),
      chin_(Ellipsoid::of({0, -0.79f * face.length, 0.47f}, {0.20f * face.chin, 0.15f, 0.19f})),
      jaw_corner_(Ellipsoid::of({0.36f * face.jaw, -0.48f * face.length, 0.12f}, {0.19f, 0.22f, 0.26f})),
      cheekbone_(Ellipsoid::of({0.39f * face.width, -0.10f, 0.40f}, {0.19f, 0.15f, 0.20f})),
      cheek_(Ellipsoid::of({0.30f * (0.5f + 0.5f * face.width), -0.25f + 0.05f * face.smile, 0.47f},
                           {0.19f, 0.18f, 0.20f + 0.035f * face.smile})),
      socket_(Ellipsoid::of({face.eye_x - 0.02f, 0.13f, face.eyeball_z + 0.335f}, {0.19f, 0.10f, 0.15f})),
      muzzle_(Ellipsoid::of({0, face.mouth_y + 0.03f, 0.44f}, {0.25f, 0.22f, 0.285f})),
      ear_(Ellipsoid::of({0, 0, 0}, {0.062f, 0.215f * face.ear, 0.135f * face.ear})),
      ear_bowl_(Ellipsoid::of({0.060f, 0.02f, 0.035f}, {0.050f, 0.135f * face.ear, 0.080f * face.ear})) {}

// Brow ridge, cheekbones, cheeks, sockets, lids, chin.
Float4 HeadShape::with_bones(Vec3x4 q, Vec3x4 m, Float4 d) const {
  d = smooth_min(d, jaw_corner_.distance(m), 0.20f);
  d = smooth_min(d, chin_.distance(q), 0.13f);
  d = smooth_min(d, muzzle_.distance(q), 0.13f);
  d = smooth_min(d, cheekbone_.distance(m), 0.20f);
  d = smooth_min(d, cheek_.distance(m), 0.20f);
  const float ridge_z = face_.eyeball_z + 0.185f;
  d = smooth_min(
      d, capsule(m, {0.10f, 0.265f, ridge_z + 0.03f}, {face_.eye_x + 0.12f, 0.295f, ridge_z - 0.09f}, 0.055f), 0.12f);
  d = smooth_max(d, -socket_.distance(m), 0.10f);
  // The lids lie on the eyeball.
  const Vec3x4 eye = m - Vec3{face_.eye_x, face_.eye_y, face_.eyeball_z};
  return smooth_min(d, length(eye) - (face_.eyeball_radius + 0.008f), 0.045f);
}

Float4 HeadShape::with_nose(Vec3x4 q, Vec3x4 m, Float4 d) const {
  const float y = face_.nose_y, z = face_.nose_z, w = face_.nose_width;
  const Vec3 top{0, 0.17f, 0.690f}, tip{0, y + 0.02f, z - 0.075f};
  // A cone with a round end: its radius grows towards the tip.
  const Vec3x4 from_top = q - top;
  const Vec3 along = tip - top;
  const Float4 h = saturate(dot(from_top, along) / dot(along, along));
  const Float4 bridge = length(from_top - along * h) - (0.052f + 0.026f * w * h);
  d = smooth_min(d, bridge, 0.075f);
  d = smooth_min(d, length(q - Vec3{0, y, z - 0.090f}) - (0.062f + 0.028f * w), 0.045f);
  d = smooth_min(d, ellipsoid(m - Vec3{0.092f * w, y - 0.020f, z - 0.150f}, {0.058f * w, 0.056f, 0.085f}), 0.040f);
  // Nostrils open downwards.
  const Float4 nostril = ellipsoid(m - Vec3{0.052f * w, y - 0.088f, z - 0.115f}, {0.030f * w, 0.030f, 0.045f});
  return smooth_max(d, -nostril, 0.025f);
}

// Two lips that follow the mouth's line, parted by the gap.
Float4 HeadShape::with_lips(Vec3x4 q, Vec3x4 m, Float4 d) const {
  const float w = face_.mouth_half_width, front = 0.700f;
  const Float4 y = face_.over_mouth(q.x, q.y);
  const Vec3x4 flat{m.x, y, q.z};
  const Float4 back = 1.1f * q.x * q.x;  // lips follow the teeth's arch
  const Vec3x4 bent{flat.x, flat.y, flat.z + back};
  const float up = face_.upper_lip, low = face_.lower_lip, gap = face_.mouth_gap;
  const Float4 upper =
      capsule(bent, {0.028f, 0.42f * up + 0.012f, front}, {0.80f * w, 0.15f * up, front - 0.012f}, 0.50f * up + 0.008f);
  const Float4 lower = capsule(bent, {0, -gap - 0.46f * low, front - 0.006f},
                               {0.62f * w, -0.80f * gap - 0.25f * low, front - 0.020f}, 0.46f * low + 0.010f);
  d = smooth_min(d, upper, 0.040f);
  d = smooth_min(d, lower, 0.040f);
  if (gap > 0.0f) return d;
  // Closed, they meet in a groove.
  const Float4 groove = 0.030f * (1.0f - q.x * q.x * (1.0f / (w * w)));
  return smooth_max(d, groove - length(y + 0.004f, q.z - 0.80f + back), 0.016f);
}

Float4 HeadShape::with_ears(Vec3x4 m, Float4 d) const {
  // Turned a little to the front, so that its inner side is seen.
  const Vec3x4 at = m - Vec3{0.655f * face_.width + 0.045f, 0.00f, -0.06f};
  const Vec3x4 turned{at.x * 0.90f + at.z * 0.436f, at.y, at.z * 0.90f - at.x * 0.436f};
  const Float4 shell = smooth_max(ear_.distance(turned), -ear_bowl_.distance(turned), 0.03f);
  return smooth_min(d, shell, 0.035f);
}

Float4 HeadShape::distance(Vec3x4 q) const {
  const Float4 rough = skull(q);
  if (!any(rough < 0.50f)) return rough - 0.34f;  // the nose and the ears reach that far out of it
  const Vec3x4 m = mirrored(q);
  Float4 d = with_bones(q, m, rough);
  if (any((q.z > 0.45f) & (magnitude(q.x) < 0.5f))) {
    d = with_nose(q, m, d);
    d = with_lips(q, m, d);
  }
  if (any(m.x > 0.45f)) d = with_ears(m, d);
  return d;
}

Float4 HeadShape::neck(Vec3x4 p) const {
  const Float4 throat = capsule(p, {0, -0.55f, -0.12f}, {0, -1.45f, -0.20f}, 0.365f);
  const Vec3x4 m = mirrored(p);
  const Float4 muscle = capsule(m, {0.30f, -0.70f, -0.18f}, {0.07f, -1.32f, 0.13f}, 0.055f);
  return smooth_min(throat, muscle, 0.08f);
}

}  // namespace sdtune::train::portrait
