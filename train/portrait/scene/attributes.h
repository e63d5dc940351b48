// What a portrait can show. Each attribute is an enum whose names, in order, are the label of labels.jsonl and the stem
// of the caption's words.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "train/portrait/scene/portrait_math.h"

namespace sdtune::train::portrait {

// Of the person.
enum class HairStyle { kBald, kShort, kAfro, kLong, kBob, kBun, kMohawk, kQuiff };
enum class HairColor { kBlack, kBrown, kBlond, kRed, kGrey, kWhite, kBlue, kPink };
enum class FacialHair { kNone, kMoustache, kGoatee, kBeard };
// Of the moment.
enum class Hat { kNone, kBeanie, kCap, kTopHat, kWideHat };
enum class Glasses { kNone, kRound, kSquare, kSunglasses };
enum class Clothes { kTShirt, kStripedSweater, kHoodie, kShirt, kJacket };
enum class Color { kRed, kGreen, kBlue, kYellow, kOrange, kPurple, kPink, kBlack, kWhite };
enum class Expression { kNeutral, kSmile, kLaugh, kSad, kSurprised };
enum class Place { kWall, kBeach, kForest, kCityNight, kMountains, kBricks };
enum class Style { kPhoto, kBlackWhite, kSketch, kCartoon };

inline constexpr std::array<std::string_view, 8> kHairStyleNames = {"bald", "short", "afro",   "long",
                                                                    "bob",  "bun",   "mohawk", "quiff"};
inline constexpr std::array<std::string_view, 8> kHairColorNames = {"black", "brown", "blond", "red",
                                                                    "grey",  "white", "blue",  "pink"};
inline constexpr std::array<std::string_view, 4> kFacialHairNames = {"none", "moustache", "goatee", "beard"};
inline constexpr std::array<std::string_view, 5> kHatNames = {"none", "beanie", "cap", "top hat", "wide-brimmed hat"};
inline constexpr std::array<std::string_view, 4> kGlassesNames = {"none", "round glasses", "square glasses",
                                                                  "sunglasses"};
inline constexpr std::array<std::string_view, 5> kClothesNames = {"t-shirt", "striped sweater", "hoodie", "shirt",
                                                                  "jacket"};
inline constexpr std::array<std::string_view, 9> kColorNames = {"red",    "green", "blue",  "yellow", "orange",
                                                                "purple", "pink",  "black", "white"};
inline constexpr std::array<std::string_view, 5> kExpressionNames = {"neutral", "smile", "laugh", "sad", "surprised"};
inline constexpr std::array<std::string_view, 6> kPlaceNames = {"wall",       "beach",     "forest",
                                                                "city night", "mountains", "bricks"};
inline constexpr std::array<std::string_view, 4> kStyleNames = {"photo", "black and white", "sketch", "cartoon"};

// kHatNames and the like, and a value of theirs.
template <typename Names, typename Enum>
std::string name_of(const Names& names, Enum value) {
  return std::string(names[static_cast<std::size_t>(value)]);
}

// Linear-light colours.
Vec3 rgb_of(Color color);
Vec3 rgb_of(HairColor color);

}  // namespace sdtune::train::portrait
