// Where the features of a face of Detail::k128 lie in its image, and what of them and of its marks can be seen there.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "train/portrait/scene/person.h"

namespace sdtune::train::portrait {

// Left and right are the image's, of a head that is not turned.
enum class Landmark { kLeftEye, kRightEye, kNoseTip, kLeftMouthCorner, kRightMouthCorner };
inline constexpr std::array<std::string_view, 5> kLandmarkNames = {"left_eye", "right_eye", "nose_tip",
                                                                   "left_mouth_corner", "right_mouth_corner"};

// In units of half an image: x to the right and y up from the middle, so an image spans [-1, 1].
struct LandmarkPlace {
  float x = 0, y = 0;
  bool seen = false;  // neither behind hair, a hat or sunglasses nor behind the head itself
};

// In the order of Landmark; places also of those that are not seen.
std::array<LandmarkPlace, kLandmarkNames.size()> landmarks_of(const Identity& who, const Context& now);

enum class Mark { kBirthmark, kMole, kScar, kEarrings };
inline constexpr std::size_t kMarkCount = 4;

// Four points of the person's mark, the middle first; of earrings the left, the right and both again; nothing of a mark
// that the person has not.
std::optional<std::array<LandmarkPlace, 4>> mark_places(Mark mark, const Identity& who, const Context& now);

// Whether at least half of the person's mark can be seen, of earrings one of the two; true of a mark that the person
// has not. Colours are not asked for.
bool shows_mark(Mark mark, const Identity& who, const Context& now);

}  // namespace sdtune::train::portrait
