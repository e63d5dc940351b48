// Whether a GPU itself failed, which is no fault of the program: a restart, often on another machine, mends it.
#pragma once

#include <exception>
#include <optional>

#include "model/base/error.h"

namespace sdtune::model {

// The problem to report for an error in which CUDA says that hardware failed: memory that ECC cannot correct, NVLink.
// Unset for all other errors; those that a wrong kernel causes as well (an illegal access, an unspecified launch
// failure) are among them. Words: cudaGetErrorString of 214, 220 and 721, CUDA 13.
std::optional<Problem> hardware_fault(const std::exception& error);

}  // namespace sdtune::model
