// Variables of the process's environment.
#pragma once

#include <cstdlib>
#include <string>

namespace sdtune {

// "" where it is not set.
inline std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace sdtune
