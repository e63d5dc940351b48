// Python objects and JSON: dict, list, str, int, float, bool and None.
#pragma once

#include <pybind11/pybind11.h>

#include "model/base/json.h"

namespace sdtune::python {

// Throws pybind11::type_error for an object that JSON has no form for. Tuples and arrays become lists, paths texts.
Json json_of(pybind11::handle object);
pybind11::object object_of(const Json& json);

}  // namespace sdtune::python
