// What a rendered picture shows, as data: a line of labels.jsonl.
#pragma once

#include <cstdint>
#include <string>

#include "train/portrait/person.h"

namespace sdtune::train::portrait {

// How one picture came to be; the file holds it beside the attributes.
struct PictureSeeds {
  std::uint64_t person = 0;
  std::uint64_t picture = 0;
};

// One JSON object without line breaks: file, caption, seeds, each attribute by its name, and the identity's numbers.
std::string label_line(const std::string& file, const std::string& caption, const PictureSeeds& seeds,
                       const Identity& who, const Context& now);

}  // namespace sdtune::train::portrait
