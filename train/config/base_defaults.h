// The defaults that come with a base model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sdtune::train {

// "sd15", "sd21" or "sdxl" for a diffusers folder of that size, "" for any other model (also for a folder that cannot
// be read: preflight says what is wrong with it).
std::string base_family(const std::filesystem::path& base_folder);

// The YAML file with the defaults for this base: its own sdtune_defaults.yaml (for method full) or
// sdtune_defaults_<method>.yaml, else configs/<method>_<family>.yaml of the installation, else configs/<method>.yaml,
// else none (empty).
std::filesystem::path find_base_defaults(const std::filesystem::path& base_folder, const std::string& method);

// Whether what find_base_defaults gave came with the base and not with the installation.
bool is_own_default(const std::filesystem::path& defaults);

// The base's own files with defaults, of every method that it has one for: what is tuned from it takes them along.
std::vector<std::filesystem::path> own_base_defaults(const std::filesystem::path& base_folder);

// The last part of find_base_defaults: what the installation has for a family; "" is any other model.
std::filesystem::path find_family_defaults(const std::string& family, const std::string& method);

}  // namespace sdtune::train
