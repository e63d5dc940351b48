// Renders one portrait by marching rays through a distance field of its person.
#pragma once

#include <cstdint>

#include "model/base/image.h"
#include "train/portrait/scene/person.h"

namespace sdtune::train::portrait {

// A square image of size px (16..1024; std::invalid_argument otherwise), 2 x 2 supersampled; in
// Detail::k128 only where it is not smooth. Single-threaded and a pure function of its arguments, to the bit, on every
// x86-64 processor.
Image render(const Identity& who, const Context& now, std::int64_t size);

}  // namespace sdtune::train::portrait
