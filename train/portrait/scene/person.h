// Who is portrayed, and how this image was taken. Both are pure functions of seeds, and independent of each other.
#pragma once

#include <cstdint>

#include "train/portrait/scene/attributes.h"

namespace sdtune::train::portrait {

// Seeds of people. The ranges are disjoint, so nothing is measured on a person of the training data.
inline constexpr std::uint64_t kTrainingSeeds = 0;                         // [0, 2^32)
inline constexpr std::uint64_t kValidationSeeds = std::uint64_t{1} << 32;  // [2^32, 2^33)
inline constexpr std::uint64_t kReservedSeeds = std::uint64_t{1}
                                                << 33;  // [2^33, 2^33 + 50): the subjects of evaluation
inline constexpr std::uint64_t kReservedCount = 50;

// How much is modelled: people made for 64 px (smooth heads with painted faces) or for 128 px and more (eyelids,
// strands of hair, wrinkles). Both show the same attributes of the same seeds; an image of either is the same bits
// everywhere.
enum class Detail { k64, k128 };
inline constexpr std::array<std::string_view, 2> kDetailNames = {"64", "128"};
// What images of that size show, in px.
constexpr Detail detail_of(std::int64_t size) {
  return size >= 128 ? Detail::k128 : Detail::k64;
}

// What stays with a person. Numbers are in [-1, 1] unless said otherwise, drawn uniformly, so that the extremes that
// can be seen at 64 pixels are common. Tone, hair, beard and shape are drawn independently of each other.
struct Identity {
  float skin_tone = 0;  // [0, 1], light to dark
  float skin_warmth = 0;
  HairStyle hair_style = HairStyle::kShort;
  HairColor hair_color = HairColor::kBrown;
  FacialHair facial_hair = FacialHair::kNone;
  float hair_shade = 0;
  float face_width = 0, jaw_width = 0, chin_width = 0, face_length = 0;
  float eye_size = 0, eye_distance = 0, eye_hue = 0;  // hue in [0, 1]
  float nose_length = 0, nose_width = 0;
  float lip_size = 0, brow_thickness = 0, brow_slope = 0, ear_size = 0, hairline = 0;
  // Nameless marks that survive 64 pixels and that no caption names.
  int streak = 0;        // 0 none, 1 left, 2 middle, 3 right: a lock of another colour
  float streak_hue = 0;  // [0, 1]
  int birthmark = 0;     // 0 none, 1 left cheek, 2 right cheek, 3 forehead, 4 chin
  int earrings = 0;      // 0 none, 1 gold, 2 red, 3 turquoise
  int mole = 0;          // 0 none, 1..4 places
  bool scar = false;     // across a brow and cheek
  float freckles = 0;    // [0, 1], 0 for most
  // Shown from Detail::k128 on; nameless like the marks.
  float age = 0.3f;   // [0, 1], from about 20 to about 75 years
  float stubble = 0;  // [0, 1], 0 for most
};

// What changes from image to image.
struct Context {
  Detail detail = Detail::k64;
  Hat hat = Hat::kNone;
  Color hat_color = Color::kRed;
  Glasses glasses = Glasses::kNone;
  Clothes clothes = Clothes::kTShirt;
  Color clothes_color = Color::kBlue;
  Expression expression = Expression::kNeutral;
  Place place = Place::kWall;
  Color wall_color = Color::kWhite;
  Style style = Style::kPhoto;
  float yaw = 0, pitch = 0, roll = 0;  // of the head, in turns
  float body_yaw = 0;
  float zoom = 1, shift_x = 0, shift_y = 0;
  Vec3 light{0, 0, 1};            // unit vector towards the key light
  float warmth = 0;               // of the light, [-1, 1]
  std::uint32_t detail_seed = 0;  // of windows, trees, clouds
};

Identity draw_identity(std::uint64_t person_seed);
// Heads turn by at most 22 degrees in Detail::k64 and 35 in Detail::k128, which shows them a little larger; all else is
// the same number in both.
Context draw_context(std::uint64_t image_seed, Detail detail = Detail::k64);

}  // namespace sdtune::train::portrait
