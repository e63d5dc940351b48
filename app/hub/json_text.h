// Texts out of a hub's answers.
#pragma once

#include <string>

#include "model/base/json.h"

namespace sdtune::app {

// The text under this key; empty where there is none, or something else.
std::string json_text(const Json& object, const std::string& key);

}  // namespace sdtune::app
