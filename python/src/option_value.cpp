#include "python/src/option_value.h"

#include <pybind11/stl.h>

#include <string>
#include <variant>
#include <vector>

#include "python/src/json_convert.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

std::string encoded(const py::str& text) {
  const auto bytes =
      py::reinterpret_steal<py::bytes>(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  if (!bytes) throw py::error_already_set();
  return static_cast<std::string>(bytes);
}

py::object python_value(const std::string& text) {
  return python_text(text);
}

py::object python_value(const std::vector<std::string>& texts) {
  py::list list;
  for (const std::string& text : texts) list.append(python_value(text));
  return list;
}

template <typename T>
py::object python_value(const T& value) {
  return py::cast(value);
}

}  // namespace

std::string option_text(const py::handle& value) {
  if (py::isinstance<py::dict>(value)) return json_of(value).dump();
  if (PyFloat_CheckExact(value.ptr())) return py::repr(value);
  if (py::isinstance<py::bytes>(value)) return static_cast<std::string>(py::reinterpret_borrow<py::bytes>(value));
  if (py::hasattr(value, "__fspath__")) return option_text(value.attr("__fspath__")());
  return encoded(py::str(value));
}

py::object python_text(const std::string& text) {
  auto decoded = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "surrogateescape"));
  if (!decoded) throw py::error_already_set();
  return decoded;
}

py::object option_value(const Field& field) {
  return std::visit([](const auto* value) -> py::object { return python_value(*value); }, field.value);
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
