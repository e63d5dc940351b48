// Options (model/options/field.h) between C++ and Python.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "model/options/field.h"

namespace sdtune::python {

// A value as a flag would give it. repr of a float is the shortest text that reads back as the same number; a dict is
// JSON; a path, also as bytes, and a NumPy number give the text that str shows.
std::string option_text(const pybind11::handle& value);

// A text as Python has it. Names of files need not be UTF-8: their other bytes are lone surrogates, as of os.fsdecode,
// which option_text reads back.
pybind11::object python_text(const std::string& text);

// The value that the field points to; None for an unset one.
pybind11::object option_value(const Field& field);

// What is known of an option: name, type, optional, default, allowed, choices, unit, group, help, aliases, placeholder,
// and whether it takes_mappings or is a secret.
pybind11::dict describe_option(const Field& field);

}  // namespace sdtune::python
