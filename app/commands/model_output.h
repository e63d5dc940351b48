// Where a command writes a whole model: a diffusers folder, or one safetensors file.
#pragma once

#include <filesystem>

namespace sdtune::app {

// Whether the name is that of a file.
bool names_single_file(const std::filesystem::path& path);

// Throws ConfigError for --output when something is there that may not be replaced: anything without --overwrite, and
// with it what is no model of that kind.
void check_model_output(const std::filesystem::path& output, bool overwrite);

}  // namespace sdtune::app
