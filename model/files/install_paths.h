// Files that come with the program: presets and the bundled base.
#pragma once

#include <filesystem>

namespace sdtune {

// The path of `relative` ("configs/full_sd15.yaml", "models/portrait-64") among the installed files
// (PREFIX/share/sdtune above the program or Python module), or in the source tree that it was built in. SDTUNE_SHARE
// names another folder. Empty when it is nowhere.
std::filesystem::path find_shared_file(const std::filesystem::path& relative);

inline constexpr const char* kBundledBase = "portrait-64";

// The diffusers folder of the bundled base. Empty when this installation has none.
std::filesystem::path find_bundled_base();

// A program that comes with sdtune, beside the running one or where an installation or build folder has it. Empty when
// it is nowhere.
std::filesystem::path find_companion_program(const std::filesystem::path& name);

}  // namespace sdtune
