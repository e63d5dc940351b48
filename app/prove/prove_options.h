// The options of `prove`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/options/field.h"

namespace sdtune::app {

struct ProveOptions {
  std::string base;    // folder or hub id; empty: the bundled one
  std::string images;  // folder of photos
  std::string device = "auto";
  std::optional<std::string> against;
  std::string output = "sdtune-prove";
  std::vector<std::string> parts;     // empty: all
  std::optional<double> minutes;      // of one call
  std::optional<std::int64_t> steps;  // unset: by the device
  bool json = false;

  FieldList fields();
};

}  // namespace sdtune::app
