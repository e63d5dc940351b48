// What commands that make a model of a model have in common: --model and --output, each a diffusers folder or one
// safetensors file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/base/error.h"

namespace sdtune::app {

// Adds a problem for each of --model and --output that is empty.
void require_model_and_output(const std::string& model, const std::string& output, std::vector<Problem>& problems);

// Whether the name is that of a file.
bool names_single_file(const std::filesystem::path& path);

// Whether the name is that of a file of weights in a format that sdtune does not write: whoever gives it expects a
// file, and must not get a folder. A folder that is there may have any name.
bool names_other_file(const std::filesystem::path& path);

// Throws ConfigError for --output when something is there that may not be replaced: anything without --overwrite, and
// with it what is no model of that kind.
void check_model_output(const std::filesystem::path& output, bool overwrite);

}  // namespace sdtune::app
