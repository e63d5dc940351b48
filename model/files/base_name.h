// The name of a base that may be told to others.
#pragma once

#include <string>

namespace sdtune {

// A hub id or the bundled base as it is; org/name of a snapshot in the hub's cache; else the last part of a path.
std::string public_base_name(const std::string& base);

}  // namespace sdtune
