// What another program that runs sdtune, such as the Python module, asks for by environment variables:
//   SDTUNE_ERROR_FILE=PATH  errors as one JSON object in this file, in place of the lines on stderr
//   SDTUNE_CALLER=PID       end (as by SIGTERM) when that process, which started this one, ends
#pragma once

#include <string>
#include <vector>

#include "model/base/error.h"

namespace sdtune::app {

// Does what SDTUNE_CALLER asks for. On other systems than Linux nothing.
void end_with_caller();

// Writes {"error": TYPE, "exit_code", "problems": [{"where", "what", "hint"}, ...]}. `type` is a class of the Python
// module. Returns false where no file is asked for or it cannot be written: then the lines go to stderr.
bool tell_caller(const std::string& type, ExitCode code, const std::vector<Problem>& problems);

}  // namespace sdtune::app
