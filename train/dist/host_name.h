// What this machine calls itself, for messages that name ranks.
#pragma once

#include <unistd.h>

#include <string>

namespace sdtune::train {

inline std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown host";
}

}  // namespace sdtune::train
