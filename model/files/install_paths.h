// Files that come with the program: presets and the bundled bases.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

namespace sdtune {

// The path of `relative` ("configs/full_sd15.yaml", "models/portrait-128") among the installed files
// (PREFIX/share/sdtune above the program or Python module), or in the source tree that it was built in. SDTUNE_SHARE
// names another folder. Empty when it is nowhere.
std::filesystem::path find_shared_file(const std::filesystem::path& relative);

inline constexpr const char* kBundledBase = "portrait-128";  // where no base is named
inline constexpr std::array<std::string_view, 2> kBundledBases = {"portrait-64", "portrait-128"};

bool is_bundled_base(std::string_view name);
// The diffusers folder of a bundled base. Empty when this installation has none.
std::filesystem::path find_bundled_base(const std::string& name = kBundledBase);

// A program that comes with sdtune, beside the running one or where an installation or build folder has it. Empty when
// it is nowhere.
std::filesystem::path find_companion_program(const std::filesystem::path& name);

}  // namespace sdtune
