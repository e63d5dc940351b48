// What a rendered image shows, as data: a line of labels.jsonl.
#pragma once

#include <cstdint>
#include <string>

#include "train/portrait/scene/person.h"

namespace sdtune::train::portrait {

// How one image came to be; the file holds it beside the attributes.
struct ImageSeeds {
  std::uint64_t person = 0;
  std::uint64_t image = 0;
};

// One JSON object without line breaks: file, caption, seeds, the detail by its name, each attribute by
// its name, and the identity's numbers (age and stubble only where the detail shows them).
std::string label_line(const std::string& file, const std::string& caption, const ImageSeeds& seeds,
                       const Identity& who, const Context& now);

}  // namespace sdtune::train::portrait
