// Variables of the process's environment.
#pragma once

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace sdtune {

// "" where it is not set.
inline std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// HOME; where it is not set, as in a service or in what a cloud runs at a machine's first start, what the system knows
// of this user, as Python's expanduser has it. "" where neither says one.
inline std::string home_folder() {
  if (const char* home = std::getenv("HOME"); home != nullptr) return home;
  const passwd* user = ::getpwuid(::getuid());
  return user == nullptr || user->pw_dir == nullptr ? "" : user->pw_dir;
}

// The path that a variable names. A "~" at its start is the user's folder, as in huggingface_hub: no shell puts that in
// where the variable comes from a file (docker --env-file, systemd) or from quotes.
inline std::string path_variable(const char* name) {
  std::string path = environment_variable(name);
  if (path == "~" || path.starts_with("~/")) path.replace(0, 1, home_folder());
  return path;
}

}  // namespace sdtune
