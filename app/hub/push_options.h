// The options of `sdtune push`.
#pragma once

#include <cstdint>
#include <string>

#include "model/options/field.h"

namespace sdtune::app {

struct PushOptions {
  bool is_private = true;
  std::string revision = "main";
  std::string message = "Upload with sdtune";
  std::string sheet;
  bool with_sheet = true;
  bool dry_run = false;
  std::int64_t retries = 5;
  bool json = false;

  FieldList fields();
};

}  // namespace sdtune::app
