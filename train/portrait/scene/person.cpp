#include "train/portrait/scene/person.h"

#include "model/base/philox.h"

namespace sdtune::train::portrait {
namespace {

// Numbered draws: each attribute has its own index, so that adding one never changes the others.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint32_t purpose) : seed_(seed), purpose_(purpose) {}
  // (0, 1]
  float unit(std::uint32_t index) const { return philox_uniform(word(index)); }
  float symmetric(std::uint32_t index) const { return 2.0f * unit(index) - 1.0f; }
  float between(std::uint32_t index, float low, float high) const { return mix(low, high, unit(index)); }
  int below(std::uint32_t index, int count) const {
    return static_cast<int>((static_cast<std::uint64_t>(word(index)) * static_cast<std::uint64_t>(count)) >> 32);
  }
  bool chance(std::uint32_t index, float probability) const { return unit(index) <= probability; }
  std::uint32_t word(std::uint32_t index) const {
    return philox4x32({{index, purpose_, 0, 0}}, static_cast<std::uint32_t>(seed_),
                      static_cast<std::uint32_t>(seed_ >> 32))
        .word[0];
  }

 private:
  std::uint64_t seed_;
  std::uint32_t purpose_;
};

constexpr std::uint32_t kIdentityDraws = 0x70657273;  // "pers"
constexpr std::uint32_t kContextDraws = 0x70696374;   // "pict"

}  // namespace

Identity draw_identity(std::uint64_t person_seed) {
  const Draws draw(person_seed, kIdentityDraws);
  Identity who;
  who.skin_tone = draw.unit(0);
  who.skin_warmth = draw.symmetric(1);
  who.hair_style = static_cast<HairStyle>(draw.below(2, static_cast<int>(kHairStyleNames.size())));
  who.hair_color = static_cast<HairColor>(draw.below(3, static_cast<int>(kHairColorNames.size())));
  who.facial_hair = static_cast<FacialHair>(draw.below(4, static_cast<int>(kFacialHairNames.size())));
  who.hair_shade = draw.symmetric(5);
  who.face_width = draw.symmetric(6);
  who.jaw_width = draw.symmetric(7);
  who.chin_width = draw.symmetric(8);
  who.face_length = draw.symmetric(9);
  who.eye_size = draw.symmetric(10);
  who.eye_distance = draw.symmetric(11);
  who.eye_hue = draw.unit(12);
  who.nose_length = draw.symmetric(13);
  who.nose_width = draw.symmetric(14);
  who.lip_size = draw.symmetric(15);
  who.brow_thickness = draw.symmetric(16);
  who.brow_slope = draw.symmetric(17);
  who.ear_size = draw.symmetric(18);
  who.hairline = draw.symmetric(19);
  who.streak = draw.chance(20, 0.4f) ? 1 + draw.below(21, 3) : 0;
  who.streak_hue = draw.unit(22);
  who.birthmark = draw.chance(23, 0.35f) ? 1 + draw.below(24, 4) : 0;
  who.earrings = draw.chance(25, 0.45f) ? 1 + draw.below(26, 3) : 0;
  who.mole = draw.chance(27, 0.4f) ? 1 + draw.below(28, 4) : 0;
  who.scar = draw.chance(29, 0.2f);
  who.freckles = draw.chance(30, 0.25f) ? draw.unit(31) : 0.0f;
  who.age = draw.unit(32);
  who.stubble = draw.chance(33, 0.3f) ? draw.between(34, 0.4f, 1.0f) : 0.0f;
  return who;
}

Context draw_context(std::uint64_t image_seed, Detail detail) {
  const Draws draw(image_seed, kContextDraws);
  const bool fine = detail == Detail::k128;
  const float most_yaw = fine ? 35.0f / 360 : 0.06f;
  Context now;
  now.detail = detail;
  now.hat =
      draw.chance(0, 0.45f) ? static_cast<Hat>(1 + draw.below(1, static_cast<int>(kHatNames.size()) - 1)) : Hat::kNone;
  now.hat_color = static_cast<Color>(draw.below(2, static_cast<int>(kColorNames.size())));
  now.glasses = draw.chance(3, 0.45f)
                    ? static_cast<Glasses>(1 + draw.below(4, static_cast<int>(kGlassesNames.size()) - 1))
                    : Glasses::kNone;
  now.clothes = static_cast<Clothes>(draw.below(5, static_cast<int>(kClothesNames.size())));
  now.clothes_color = static_cast<Color>(draw.below(6, static_cast<int>(kColorNames.size())));
  now.expression = static_cast<Expression>(draw.below(7, static_cast<int>(kExpressionNames.size())));
  now.place = static_cast<Place>(draw.below(8, static_cast<int>(kPlaceNames.size())));
  now.wall_color = static_cast<Color>(draw.below(9, static_cast<int>(kColorNames.size())));
  now.style = draw.chance(10, 0.4f) ? static_cast<Style>(1 + draw.below(11, static_cast<int>(kStyleNames.size()) - 1))
                                    : Style::kPhoto;
  now.yaw = draw.between(12, -most_yaw, most_yaw);
  now.pitch = draw.between(13, -0.02f, 0.02f);
  now.roll = draw.between(14, -0.015f, 0.015f);
  now.body_yaw = draw.between(15, -0.04f, 0.04f);
  now.zoom = fine ? draw.between(16, 1.02f, 1.20f) : draw.between(16, 0.95f, 1.08f);
  now.shift_x = draw.between(17, -0.12f, 0.12f);
  now.shift_y = draw.between(18, -0.07f, 0.07f);
  now.light = normalize(Vec3{draw.between(19, -0.8f, 0.8f), draw.between(20, 0.25f, 0.8f), 1.0f});
  now.warmth = draw.symmetric(21);
  now.detail_seed = draw.word(22);
  return now;
}

}  // namespace sdtune::train::portrait
