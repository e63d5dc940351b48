// What commands ask of --output and of other places for results before they compute: their figures and images are not
// to be lost at the end.
#pragma once

#include <string>
#include <vector>

#include "model/base/error.h"

namespace sdtune::app {

// Adds a problem when the folder --output is empty, or nothing can be written into it or made there.
void check_output_folder(const std::string& output, std::vector<Problem>& problems);

// Adds a problem for the option, "output", when the folder of its file cannot be written or made.
void check_output_file(const std::string& option, const std::string& path, std::vector<Problem>& problems);

// Adds a problem for the option, "contact_sheet", when its file is no .png or its folder cannot be written. An empty
// path asks for no file.
void check_image_file(const std::string& option, const std::string& path, std::vector<Problem>& problems);

}  // namespace sdtune::app
