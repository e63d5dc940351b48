// sdtune.TrainConfig: every option of training as an attribute, made from the one list of fields.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/error.h"
#include "python/src/json_convert.h"
#include "python/src/module.h"
#include "train/config/load_config.h"
#include "train/config/settings.h"
#include "train/config/train_config.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

using train::Setting;
using train::TrainConfig;

bool is_sequence(const py::handle& value) {
  return py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value);
}

// A value as a flag would give it. repr of a float is the shortest text that reads back as the same number; a path and
// a NumPy number give the text that str shows.
std::string text_of(const py::handle& value) {
  if (py::isinstance<py::dict>(value)) return json_of(value).dump();
  if (PyFloat_CheckExact(value.ptr())) return py::repr(value);
  if (py::hasattr(value, "__fspath__")) return py::str(value.attr("__fspath__")());
  return py::str(value);
}

bool is_plain_text(const Field* field) {
  return field != nullptr && field_type(*field) == "string" && !is_optional(*field);
}

// None is an empty text to an option that is one: validation_prompt=None.
Setting setting_of(const FieldList& fields, const std::string& name, const py::handle& value) {
  Setting setting;
  setting.name = name;
  setting.origin = name;
  setting.is_null = value.is_none() && !is_plain_text(find_field(fields, name));
  setting.is_list = is_sequence(value);
  if (setting.is_list) {
    for (const py::handle item : value) setting.items.push_back(text_of(item));
  } else if (value.is_none()) {
    if (!setting.is_null) setting.items.emplace_back();
  } else {
    if (py::isinstance<py::dict>(value)) throw ConfigError(name, "is a dict (allowed: a plain value or a list)");
    setting.items.push_back(text_of(value));
  }
  return setting;
}

TrainConfig load(const std::filesystem::path& file, const py::kwargs& options) {
  TrainConfig defaults;
  const FieldList fields = defaults.fields();
  std::vector<Setting> settings;
  for (const auto& [name, value] : options) settings.push_back(setting_of(fields, py::str(name), value));
  train::LoadedConfig loaded = train::load_train_config(file, settings);
  if (!loaded.problems.empty()) throw ConfigError(std::move(loaded.problems));
  return std::move(loaded.config);
}

py::object value_of(const Field& field) {
  return std::visit([](const auto* value) -> py::object { return py::cast(*value); }, field.value);
}

py::object get_option(TrainConfig& config, const std::string& name) {
  const FieldList fields = config.fields();
  const Field* field = find_field(fields, name);
  if (field == nullptr) throw py::attribute_error("TrainConfig has no option " + name);
  return value_of(*field);
}

void set_option(TrainConfig& config, const std::string& name, const py::handle& value) {
  const FieldList fields = config.fields();
  std::vector<Problem> problems;
  train::apply_settings(fields, {setting_of(fields, name, value)}, config.origins, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

py::dict to_dict(TrainConfig& config) {
  py::dict options;
  for (const Field& field : config.fields()) options[py::str(field.info.name)] = value_of(field);
  return options;
}

// What is known of each option, for tools and for the test of the stubs.
py::list option_list() {
  TrainConfig defaults;
  py::list options;
  for (const Field& field : defaults.fields()) {
    py::dict option;
    option["name"] = field.info.name;
    option["type"] = field_type(field);
    option["optional"] = is_optional(field);
    option["default"] = value_of(field);
    option["allowed"] = field_range(field);
    option["unit"] = field.info.unit;
    option["group"] = field.info.group;
    option["help"] = field.info.help;
    option["aliases"] = field.info.aliases;
    options.append(option);
  }
  return options;
}

py::list names_of(TrainConfig& config) {
  py::list names;
  for (const char* method : {"from_yaml", "options", "to_dict", "to_yaml"}) names.append(method);
  for (const Field& field : config.fields()) names.append(field.info.name);
  return names;
}

constexpr const char* kClassDoc =
    "The options of a training run, by name: TrainConfig(images=\"me\", max_train_steps=300).\n\n"
    "Every option has a default, of the base model where it brings some; TrainConfig.options() lists them with type, "
    "range, unit and meaning. Attributes read and set options. An unknown name (the nearest one is named), a wrong "
    "type "
    "or a value out of range raises ConfigError, whose .problems has all of them.";

}  // namespace

void register_config(py::module_& module) {
  py::class_<TrainConfig>(module, "TrainConfig", kClassDoc)
      .def(py::init([](const py::kwargs& options) { return load({}, options); }))
      .def_static("from_yaml", &load, py::arg("path"),
                  "Reads a YAML file of option names; keywords win over it. Raises ConfigError naming file and line.")
      .def_static("options", &option_list, "Every option as a dict: name, type, default, allowed, unit, group, help.")
      .def("to_dict", &to_dict, "All options with their values.")
      .def(
          "to_yaml", [](TrainConfig& config) { return train::config_to_yaml(config.fields(), config.origins); },
          "The text of a YAML file that from_yaml reads back, with where each value came from as a comment.")
      .def("__getattr__", &get_option, py::arg("name"))
      .def("__setattr__", &set_option, py::arg("name"), py::arg("value"))
      .def("__dir__", &names_of)
      .def("__eq__", [](TrainConfig& one, TrainConfig& other) { return to_dict(one).equal(to_dict(other)); })
      .def("__repr__",
           [](TrainConfig& config) {
             std::string text;
             for (const Field& field : config.fields()) {
               if (!config.origins.contains(field.info.name)) continue;  // a default
               text += (text.empty() ? "" : ", ") + field.info.name + "=" + std::string(py::repr(value_of(field)));
             }
             return "TrainConfig(" + text + ")";
           })
      .def(py::pickle([](TrainConfig& config) { return to_dict(config); },
                      [](const py::dict& options) { return load({}, py::reinterpret_borrow<py::kwargs>(options)); }));
}

}  // namespace sdtune::python
