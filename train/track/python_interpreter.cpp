#include "train/track/python_interpreter.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <system_error>

namespace sdtune::train {

namespace {

std::filesystem::path& module_python() {
  static std::filesystem::path interpreter;
  return interpreter;
}

}  // namespace

void use_python(const std::filesystem::path& interpreter) {
  module_python() = interpreter;
}

std::filesystem::path find_python(const std::filesystem::path& program) {
  const char* given = std::getenv("SDTUNE_PYTHON");
  if (given != nullptr && *given != '\0') return given;
  if (!module_python().empty()) return module_python();
  if (const std::filesystem::path beside = program.parent_path() / "python3"; std::filesystem::exists(beside))
    return beside;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::filesystem::path python = std::filesystem::path(folder) / "python3";
    if (access(python.c_str(), X_OK) == 0) return python;
  }
  return {};
}

std::filesystem::path find_python() {
  std::error_code unknown;
  return find_python(std::filesystem::read_symlink("/proc/self/exe", unknown));
}

}  // namespace sdtune::train
