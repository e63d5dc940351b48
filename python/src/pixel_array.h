// Images of Python: uint8 [H, W, 3], or what holds whole numbers from 0 to 255 in that shape (lists, PIL images).
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "model/base/image.h"

namespace sdtune::python {

// Needs the interpreter lock. `name` is the argument's. Throws ConfigError for other numbers, which a conversion to
// uint8 would cut off or wrap around, and DataError for another shape.
Image image_of(const pybind11::object& object, const std::string& name);

}  // namespace sdtune::python
