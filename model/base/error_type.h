// The name of an error's class, as last words and Python say it.
#pragma once

#include "model/base/error.h"

namespace sdtune {

// "ConfigError"; "Error" for one that is none of the classes of error.h. The Python module has an exception of each
// name.
const char* error_type(const Error& error);

}  // namespace sdtune
