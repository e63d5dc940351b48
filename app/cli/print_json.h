// The report of a command with --json.
#pragma once

#include "model/base/json.h"

namespace sdtune::app {

// One JSON object on stdout, over several lines. Bytes that are no UTF-8 (names of files) become U+FFFD.
void print_json(const Json& report);

}  // namespace sdtune::app
