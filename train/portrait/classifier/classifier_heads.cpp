#include "train/portrait/classifier/classifier_heads.h"

#include <stdexcept>

namespace sdtune::train::classifier {
namespace {

using portrait::Context;
using portrait::HairStyle;
using portrait::Hat;
using portrait::Identity;
using portrait::Place;
using portrait::Style;

constexpr std::array<std::string_view, 4> kStreakNames = {"none", "left", "middle", "right"};
constexpr std::array<std::string_view, 5> kBirthmarkNames = {"none", "left cheek", "right cheek", "forehead", "chin"};
constexpr std::array<std::string_view, 4> kEarringNames = {"none", "gold", "red", "turquoise"};
constexpr std::array<std::string_view, 5> kMoleNames = {"none", "first place", "second place", "third place",
                                                        "fourth place"};
constexpr std::array<std::string_view, 2> kScarNames = {"none", "scar"};

bool has_colors(const Context& now) {
  return now.style == Style::kPhoto || now.style == Style::kCartoon;
}

bool shows_hair(const Identity& who, const Context& now) {
  return now.hat == Hat::kNone && who.hair_style != HairStyle::kBald;
}

// Brows and what shows below a hat have the hair's colour too; a mohawk is all under the hat.
bool shows_hair_color(const Identity& who, const Context& now) {
  const bool hidden = now.hat != Hat::kNone && who.hair_style == HairStyle::kMohawk;
  return has_colors(now) && who.hair_style != HairStyle::kBald && !hidden;
}

bool shows_ears(const Identity& who) {
  return who.hair_style != HairStyle::kLong && who.hair_style != HairStyle::kBob && who.hair_style != HairStyle::kAfro;
}

// Heads of the coarse people turn too little to hide a mark, and their labels stay as they were.
bool shows(portrait::Mark mark, const portrait::Portrait& portrait) {
  return portrait.now.detail == portrait::Detail::k64 || portrait::shows_mark(mark, portrait.who, portrait.now);
}

template <typename Enum>
std::optional<std::int64_t> class_if(bool visible, Enum value) {
  return visible ? std::optional(static_cast<std::int64_t>(value)) : std::nullopt;
}

float number_of(std::size_t number, const Identity& who) {
  const std::array<float, kNumberNames.size()> values = {
      who.skin_tone,      who.skin_warmth, who.hair_shade,   who.face_width,  who.jaw_width,  who.chin_width,
      who.face_length,    who.eye_size,    who.eye_distance, who.nose_length, who.nose_width, who.lip_size,
      who.brow_thickness, who.brow_slope,  who.ear_size,     who.hairline,    who.freckles,   who.age,
      who.stubble};
  return values.at(number);
}

}  // namespace

const std::array<HeadInfo, kHeadCount>& head_infos() {
  static const std::array<HeadInfo, kHeadCount> infos = {{{"hat", portrait::kHatNames},
                                                          {"hat_color", portrait::kColorNames},
                                                          {"glasses", portrait::kGlassesNames},
                                                          {"clothes", portrait::kClothesNames},
                                                          {"clothes_color", portrait::kColorNames},
                                                          {"expression", portrait::kExpressionNames},
                                                          {"place", portrait::kPlaceNames},
                                                          {"wall_color", portrait::kColorNames},
                                                          {"style", portrait::kStyleNames},
                                                          {"hair_style", portrait::kHairStyleNames},
                                                          {"hair_color", portrait::kHairColorNames},
                                                          {"facial_hair", portrait::kFacialHairNames},
                                                          {"streak", kStreakNames},
                                                          {"birthmark", kBirthmarkNames},
                                                          {"earrings", kEarringNames},
                                                          {"mole", kMoleNames},
                                                          {"scar", kScarNames}}};
  return infos;
}

const HeadInfo& head_info(Head head) {
  return head_infos().at(static_cast<std::size_t>(head));
}

std::int64_t first_column(Head head) {
  std::int64_t column = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(head); ++i) {
    column += static_cast<std::int64_t>(head_infos()[i].classes.size());
  }
  return column;
}

std::int64_t column_count() {
  const auto last = static_cast<Head>(kHeadCount - 1);
  return first_column(last) + static_cast<std::int64_t>(head_info(last).classes.size());
}

std::optional<std::int64_t> visible_class(Head head, const portrait::Portrait& portrait) {
  const Identity& who = portrait.who;
  const Context& now = portrait.now;
  switch (head) {
    case Head::kHat:
      return class_if(true, now.hat);
    case Head::kHatColor:
      return class_if(now.hat != Hat::kNone && has_colors(now), now.hat_color);
    case Head::kGlasses:
      return class_if(true, now.glasses);
    case Head::kClothes:
      return class_if(true, now.clothes);
    case Head::kClothesColor:
      return class_if(has_colors(now), now.clothes_color);
    case Head::kExpression:
      return class_if(true, now.expression);
    case Head::kPlace:
      return class_if(true, now.place);
    case Head::kWallColor:
      return class_if(now.place == Place::kWall && has_colors(now), now.wall_color);
    case Head::kStyle:
      return class_if(true, now.style);
    case Head::kHairStyle:
      return class_if(now.hat == Hat::kNone, who.hair_style);
    case Head::kHairColor:
      return class_if(shows_hair_color(who, now), who.hair_color);
    case Head::kFacialHair:
      return class_if(true, who.facial_hair);
    case Head::kStreak:
      return class_if(shows_hair(who, now) && has_colors(now), who.streak);
    case Head::kBirthmark:
      return class_if(has_colors(now) && shows(portrait::Mark::kBirthmark, portrait), who.birthmark);
    case Head::kEarrings:
      return class_if(shows_ears(who) && has_colors(now) && shows(portrait::Mark::kEarrings, portrait), who.earrings);
    case Head::kMole:
      return class_if(shows(portrait::Mark::kMole, portrait), who.mole);
    case Head::kScar:
      return class_if(has_colors(now) && shows(portrait::Mark::kScar, portrait), who.scar);
  }
  throw std::invalid_argument("no such head");
}

Head head_of(portrait::Mark mark) {
  switch (mark) {
    case portrait::Mark::kBirthmark:
      return Head::kBirthmark;
    case portrait::Mark::kMole:
      return Head::kMole;
    case portrait::Mark::kScar:
      return Head::kScar;
    case portrait::Mark::kEarrings:
      return Head::kEarrings;
  }
  throw std::invalid_argument("no such mark");
}

std::optional<float> visible_number(std::size_t number, const portrait::Portrait& portrait) {
  const std::string_view name = kNumberNames.at(number);
  if (static_cast<std::int64_t>(number) >= number_count(portrait.now.detail)) return std::nullopt;
  if (name == "stubble" && portrait.now.style == Style::kSketch) return std::nullopt;
  const bool of_skin = name == "skin_tone" || name == "skin_warmth" || name == "freckles";
  if (of_skin && portrait.now.style == Style::kSketch) return std::nullopt;
  if (name == "skin_warmth" && !has_colors(portrait.now)) return std::nullopt;
  if (name == "hair_shade" && !shows_hair_color(portrait.who, portrait.now)) return std::nullopt;
  if (name == "hairline" && !shows_hair(portrait.who, portrait.now)) return std::nullopt;
  if (name == "ear_size" && !shows_ears(portrait.who)) return std::nullopt;
  return number_of(number, portrait.who);
}

}  // namespace sdtune::train::classifier
