// Times as logs, reports and estimates state them.
#pragma once

#include <chrono>

namespace sdtune {

// Of a clock that is never set.
inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The time of day, which may be set back.
inline double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace sdtune
