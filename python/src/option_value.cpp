#include "python/src/option_value.h"

#include <pybind11/stl.h>

#include <variant>

#include "python/src/json_convert.h"

namespace py = pybind11;

namespace sdtune::python {

std::string option_text(const py::handle& value) {
  if (py::isinstance<py::dict>(value)) return json_of(value).dump();
  if (PyFloat_CheckExact(value.ptr())) return py::repr(value);
  if (py::hasattr(value, "__fspath__")) return py::str(value.attr("__fspath__")());
  return py::str(value);
}

py::object option_value(const Field& field) {
  return std::visit([](const auto* value) -> py::object { return py::cast(*value); }, field.value);
}

py::dict describe_option(const Field& field) {
  py::dict option;
  option["name"] = field.info.name;
  option["type"] = field_type(field);
  option["optional"] = is_optional(field);
  option["default"] = option_value(field);
  option["allowed"] = field_range(field);
  option["choices"] = field.info.choices;
  option["unit"] = field.info.unit;
  option["group"] = field.info.group;
  option["help"] = field.info.help;
  option["aliases"] = field.info.aliases;
  option["placeholder"] = field.info.placeholder;
  option["takes_mappings"] = field.info.takes_mappings;
  option["secret"] = field.info.is_secret;
  return option;
}

}  // namespace sdtune::python
