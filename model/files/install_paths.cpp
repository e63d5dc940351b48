#include "model/files/install_paths.h"

#include "model/files/file_system.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <vector>

namespace sdtune {
namespace {

namespace fs = std::filesystem;

// The file that this code was loaded from: the Python module, or the program.
std::vector<fs::path> own_files() {
  std::vector<fs::path> files;
  std::error_code status;
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&find_shared_file), &info) != 0 && info.dli_fname != nullptr) {
    // Of a program it is argv[0]. A bare name was found by PATH: what has it in the working directory is another file.
    const fs::path loaded = info.dli_fname;
    const fs::path module = loaded.has_parent_path() ? fs::canonical(loaded, status) : fs::path();
    if (!status && !module.empty()) files.push_back(module);
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", status);
  if (!status) files.push_back(program);
  return files;
}

bool is_there(const fs::path& path) {
  std::error_code status;
  return fs::exists(path, status);
}

}  // namespace

fs::path find_shared_file(const fs::path& relative) {
  const char* chosen = std::getenv("SDTUNE_SHARE");
  if (chosen != nullptr && *chosen != '\0') return is_there(chosen / relative) ? chosen / relative : fs::path();
  for (const fs::path& file : own_files()) {
    for (fs::path folder = file.parent_path(); folder != folder.root_path(); folder = folder.parent_path()) {
      const fs::path installed = folder / "share" / "sdtune" / relative;
      if (is_there(installed)) return installed;
      const bool is_source_tree = is_there(folder / "model/files/install_paths.cpp");
      if (is_source_tree && is_there(folder / relative)) return folder / relative;
    }
  }
  return {};
}

bool is_bundled_base(std::string_view name) {
  return std::find(kBundledBases.begin(), kBundledBases.end(), name) != kBundledBases.end();
}

fs::path find_bundled_base(const std::string& name) {
  return find_shared_file(fs::path("models") / name);
}

fs::path find_companion_program(const fs::path& name) {
  for (const fs::path& file : own_files()) {
    for (fs::path folder = file.parent_path(); folder != folder.root_path(); folder = folder.parent_path()) {
      // Beside the program; bin of an environment, above the Python module; app of a build folder.
      for (const char* place : {"", "bin", "app"}) {
        const fs::path program = folder / place / name;
        if (is_file(program)) return program;
      }
    }
  }
  return {};
}

}  // namespace sdtune
