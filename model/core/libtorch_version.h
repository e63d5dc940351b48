// Which LibTorch is loaded. Its C++ ABI is that of one version, and pip puts another torch in the place of ours where a
// package that is installed later asks for it.
#pragma once

#include <string>

namespace sdtune::model {

// As the package torch says that it lies in ("2.11.0+cu130"); "" where it lies in none, as in our tarball.
std::string loaded_libtorch();

// Throws ConfigError where it is of another version than this code was built with.
void check_loaded_libtorch();

}  // namespace sdtune::model
