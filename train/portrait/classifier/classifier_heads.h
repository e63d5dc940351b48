// What the classifier reads off an image: attributes as classes ("heads"), and the numbers of an identity.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "train/portrait/detailed/landmarks.h"
#include "train/portrait/renderer/portrait_batch.h"

namespace sdtune::train::classifier {

// In the order of the network's outputs. Up to kFacialHair words exist in the captions; the rest are nameless marks.
enum class Head {
  kHat,
  kHatColor,
  kGlasses,
  kClothes,
  kClothesColor,
  kExpression,
  kPlace,
  kWallColor,
  kStyle,
  kHairStyle,
  kHairColor,
  kFacialHair,
  kStreak,
  kBirthmark,
  kEarrings,
  kMole,
  kScar,
};

struct HeadInfo {
  std::string_view name;  // as in labels.jsonl
  std::span<const std::string_view> classes;
};

inline constexpr std::size_t kHeadCount = 17;
const std::array<HeadInfo, kHeadCount>& head_infos();
const HeadInfo& head_info(Head head);

// The outputs of all heads lie in one row: this head's first column, and the row's length.
std::int64_t first_column(Head head);
std::int64_t column_count();

// The class shown, or nothing where the image cannot tell: the colour of a hat that is not there, any colour in black
// and white or in pencil, hair under a hat, earrings under long hair; in Detail::k128 also a mark that is turned away
// or covered.
std::optional<std::int64_t> visible_class(Head head, const portrait::Portrait& portrait);

// The numbers of portrait::Identity that a classifier estimates, in its units. Those at the end are seen in
// Detail::k128 alone.
inline constexpr std::array<std::string_view, 19> kNumberNames = {
    "skin_tone", "skin_warmth",  "hair_shade",  "face_width", "jaw_width", "chin_width",     "face_length",
    "eye_size",  "eye_distance", "nose_length", "nose_width", "lip_size",  "brow_thickness", "brow_slope",
    "ear_size",  "hairline",     "freckles",    "age",        "stubble"};
// How many of them, from the first on, a classifier of that detail estimates.
constexpr std::int64_t number_count(portrait::Detail detail) {
  return detail == portrait::Detail::k64 ? 17 : static_cast<std::int64_t>(kNumberNames.size());
}
inline constexpr std::size_t kSkinTone = 0;  // of kNumberNames

// Landmarks that a classifier of that detail finds, in the order of portrait::Landmark.
constexpr std::int64_t landmark_count(portrait::Detail detail) {
  return detail == portrait::Detail::k64 ? 0 : static_cast<std::int64_t>(portrait::kLandmarkNames.size());
}

// The head that reads a mark, and how many marks have their places in the labels of images of that detail.
Head head_of(portrait::Mark mark);
constexpr std::int64_t mark_count(portrait::Detail detail) {
  return detail == portrait::Detail::k64 ? 0 : static_cast<std::int64_t>(portrait::kMarkCount);
}

// The number, or nothing where the image cannot tell (skin in pencil, the hairline under a hat).
std::optional<float> visible_number(std::size_t number, const portrait::Portrait& portrait);

}  // namespace sdtune::train::classifier
