// Detail::k128: the samples of one portrait, more of them where the image is not smooth.
#pragma once

#include <cstdint>

#include "train/portrait/scene/person.h"
#include "train/portrait/scene/samples.h"

namespace sdtune::train::portrait {

// A grid of side x side samples, two by two of which make a pixel; side is even. Single-threaded and a pure function of
// its arguments, to the bit, on every x86-64 processor.
SampleGrid trace_detailed(const Identity& who, const Context& now, std::int64_t side);

}  // namespace sdtune::train::portrait
