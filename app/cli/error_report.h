// What the user sees of an error: one line on stderr a problem, an exit code, and the same in last_error.json of the
// run folder once there is one. Another program may ask for it as JSON (caller.h).
#pragma once

#include <exception>
#include <vector>

#include "model/base/error.h"

namespace sdtune::app {

// Prints the exception, and returns the exit code of the process. Errors of LibTorch lose their C++ stack
// trace unless SDTUNE_DEBUG=1; out of memory is distinguished from other faults.
int report_exception(const std::exception_ptr& exception) noexcept;

// What report_exception says of it, for a report on stdout beside its lines.
std::vector<Problem> problems_of(const std::exception_ptr& exception);

// Prints problems as the error lines of interface.md, to stderr.
void print_problems(const std::vector<Problem>& problems);

// Flushes stdout. A reader or a terminal that went away (`| head`) is no fault; a full disk is: throws StorageError.
void finish_output();

}  // namespace sdtune::app
