// The place behind the person, out of focus.
#pragma once

#include <cstdint>
#include <vector>

#include "train/portrait/scene/person.h"

namespace sdtune::train::portrait {

// The background of Detail::k64, blurred as a lens does behind its subject.
class Backdrop {
 public:
  explicit Backdrop(const Context& now);

  // Linear light at image coordinates: x to the right and y up from the middle, an image spans [-1, 1].
  Vec3 at(float x, float y) const;

 private:
  static constexpr int kSide = 120;
  void blur(int radius);

  std::vector<Vec3> colors_;  // rows from the lowest on, over [-1.1, 1.1]
};

}  // namespace sdtune::train::portrait
