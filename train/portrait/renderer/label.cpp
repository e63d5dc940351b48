#include "train/portrait/renderer/label.h"

#include "model/base/json.h"

namespace sdtune::train::portrait {
namespace {

Json identity_json(const Identity& who, Detail detail) {
  Json identity{{"skin_tone", who.skin_tone},
                {"skin_warmth", who.skin_warmth},
                {"hair_style", name_of(kHairStyleNames, who.hair_style)},
                {"hair_color", name_of(kHairColorNames, who.hair_color)},
                {"hair_shade", who.hair_shade},
                {"facial_hair", name_of(kFacialHairNames, who.facial_hair)},
                {"face_width", who.face_width},
                {"jaw_width", who.jaw_width},
                {"chin_width", who.chin_width},
                {"face_length", who.face_length},
                {"eye_size", who.eye_size},
                {"eye_distance", who.eye_distance},
                {"eye_hue", who.eye_hue},
                {"nose_length", who.nose_length},
                {"nose_width", who.nose_width},
                {"lip_size", who.lip_size},
                {"brow_thickness", who.brow_thickness},
                {"brow_slope", who.brow_slope},
                {"ear_size", who.ear_size},
                {"hairline", who.hairline},
                {"streak", who.streak},
                {"streak_hue", who.streak_hue},
                {"birthmark", who.birthmark},
                {"earrings", who.earrings},
                {"mole", who.mole},
                {"scar", who.scar},
                {"freckles", who.freckles}};
  if (detail == Detail::k128) {  // the other does not show them
    identity["age"] = who.age;
    identity["stubble"] = who.stubble;
  }
  return identity;
}

Json context_json(const Context& now) {
  return Json{{"hat", name_of(kHatNames, now.hat)},
              {"hat_color", name_of(kColorNames, now.hat_color)},
              {"glasses", name_of(kGlassesNames, now.glasses)},
              {"clothes", name_of(kClothesNames, now.clothes)},
              {"clothes_color", name_of(kColorNames, now.clothes_color)},
              {"expression", name_of(kExpressionNames, now.expression)},
              {"place", name_of(kPlaceNames, now.place)},
              {"wall_color", name_of(kColorNames, now.wall_color)},
              {"style", name_of(kStyleNames, now.style)},
              {"yaw_turns", now.yaw},
              {"pitch_turns", now.pitch},
              {"roll_turns", now.roll},
              {"body_yaw_turns", now.body_yaw},
              {"zoom", now.zoom},
              {"shift_x", now.shift_x},
              {"shift_y", now.shift_y},
              {"light", {now.light.x, now.light.y, now.light.z}},
              {"warmth", now.warmth}};
}

}  // namespace

std::string label_line(const std::string& file, const std::string& caption, const ImageSeeds& seeds,
                       const Identity& who, const Context& now) {
  return Json{{"file", file},
              {"caption", caption},
              {"person_seed", seeds.person},
              {"picture_seed", seeds.image},
              {"detail", name_of(kDetailNames, now.detail)},
              {"identity", identity_json(who, now.detail)},
              {"context", context_json(now)}}
      .dump();
}

}  // namespace sdtune::train::portrait
