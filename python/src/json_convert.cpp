#include "python/src/json_convert.h"

#include <cstdint>
#include <string>

namespace py = pybind11;

namespace sdtune::python {

Json json_of(py::handle object) {
  if (object.is_none()) return nullptr;
  if (py::isinstance<py::bool_>(object)) return object.cast<bool>();
  if (py::isinstance<py::int_>(object)) return object.cast<std::int64_t>();
  if (py::isinstance<py::float_>(object)) return object.cast<double>();
  if (py::isinstance<py::str>(object)) return object.cast<std::string>();
  if (py::isinstance<py::dict>(object)) {
    Json out = Json::object();
    for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(object)) {
      out[py::str(key).cast<std::string>()] = json_of(value);
    }
    return out;
  }
  // NumPy's arrays and scalars, as Python's.
  if (py::hasattr(object, "tolist")) return json_of(object.attr("tolist")());
  if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) {
    Json out = Json::array();
    for (const py::handle entry : object) out.push_back(json_of(entry));
    return out;
  }
  if (py::hasattr(object, "__fspath__")) return json_of(object.attr("__fspath__")());  // the images of a concept
  throw py::type_error("a " + py::type::of(object).attr("__name__").cast<std::string>() +
                       " where a number, text, list or dict is needed");
}

py::object object_of(const Json& json) {
  switch (json.type()) {
    case Json::value_t::object: {
      py::dict out;
      for (const auto& [key, value] : json.items()) out[py::str(key)] = object_of(value);
      return out;
    }
    case Json::value_t::array: {
      py::list out;
      for (const Json& entry : json) out.append(object_of(entry));
      return out;
    }
    case Json::value_t::string:
      return py::str(valid_text(json.get<std::string>()));  // it may name a file, whose name need not be UTF-8
    case Json::value_t::boolean:
      return py::bool_(json.get<bool>());
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return py::int_(json.get<std::int64_t>());
    case Json::value_t::number_float:
      return py::float_(json.get<double>());
    default:
      return py::none();
  }
}

}  // namespace sdtune::python
