// sdtune.TrainConfig: every option of training as an attribute, made from the one list of fields.
#include <fmt/ranges.h>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/options/settings.h"
#include "python/src/module.h"
#include "python/src/option_value.h"
#include "train/config/concept_options.h"
#include "train/config/load_config.h"
#include "train/config/preset.h"
#include "train/config/train_config.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

using train::TrainConfig;

bool is_sequence(const py::handle& value) {
  return py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value);
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
    for (const py::handle item : value) {
      setting.items.push_back(option_text(item));
      setting.has_mappings = setting.has_mappings || py::isinstance<py::dict>(item);
    }
  } else if (value.is_none()) {
    if (!setting.is_null) setting.items.emplace_back();
  } else {
    if (py::isinstance<py::dict>(value)) throw ConfigError(name, "is a dict (allowed: a plain value or a list)");
    setting.items.push_back(option_text(value));
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

py::object get_option(TrainConfig& config, const std::string& name) {
  const FieldList fields = config.fields();
  const Field* field = find_field(fields, name);
  if (field == nullptr) throw py::attribute_error("TrainConfig has no option " + name);
  return option_value(*field);
}

void set_option(TrainConfig& config, const std::string& name, const py::handle& value) {
  const FieldList fields = config.fields();
  std::vector<Problem> problems;
  apply_settings(fields, {setting_of(fields, name, value)}, config.origins, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

py::dict to_dict(TrainConfig& config) {
  py::dict options;
  for (const Field& field : config.fields()) options[py::str(field.info.name)] = option_value(field);
  return options;
}

// {"lora_sd15.yaml": "200"}: the values that presets set, as config.yaml has them.
py::dict preset_values(const std::vector<Preset>& presets, const std::string& option) {
  py::dict values;
  for (const Preset& preset : presets) {
    if (const std::string* value = preset.value_of(option)) values[py::str(preset.file)] = *value;
  }
  return values;
}

// What is known of each option, for tools and for the test of the stubs.
py::list option_list() {
  const std::vector<Preset> presets = train::installed_presets();
  TrainConfig defaults;
  py::list options;
  for (const Field& field : defaults.fields()) {
    py::dict option = describe_option(field);
    option["presets"] = preset_values(presets, field.info.name);
    options.append(option);
  }
  return options;
}

// What an entry of `concepts` may hold.
py::list concept_options() {
  train::ConceptOptions defaults;
  py::list options;
  for (const Field& field : defaults.fields()) options.append(describe_option(field));
  return options;
}

std::string value_shown(const Field& field) {
  return field.info.is_secret ? "'***'" : std::string(py::repr(option_value(field)));
}

py::dict values_in_use(const TrainConfig& config) {
  py::dict values;
  for (const auto& [name, value] : train::values_of_preset(config)) values[py::str(name)] = python_text(value);
  return values;
}

// {"seed": "me.yaml:3"}: what no default set, by option; set in Python, the origin is the option's name.
py::dict origins_of(const TrainConfig& config) {
  py::dict origins;
  for (const auto& [name, origin] : config.origins) origins[py::str(name)] = python_text(origin);
  return origins;
}

py::list names_of(TrainConfig& config) {
  py::list names;
  for (const char* method : {"from_yaml", "options", "origins", "preset_values", "to_dict", "to_yaml"})
    names.append(method);
  for (const Field& field : config.fields()) names.append(field.info.name);
  return names;
}

// All that pickling keeps: values, and where they came from.
py::dict state_of(TrainConfig& config) {
  py::dict state;
  state["options"] = to_dict(config);
  state["origins"] = origins_of(config);
  state["preset"] = python_text(config.preset);
  return state;
}

// Of a state of sdtune 0.1.0, which has the options alone, every value counts as set in Python.
TrainConfig config_of_state(const py::dict& state) {
  if (!state.contains("options")) return load({}, py::reinterpret_borrow<py::kwargs>(state));
  TrainConfig config = load({}, py::reinterpret_borrow<py::kwargs>(state["options"]));
  config.origins.clear();
  for (const auto& [name, origin] : state["origins"].cast<py::dict>()) {
    config.origins[py::str(name).cast<std::string>()] = option_text(origin);
  }
  config.preset = option_text(state["preset"]);
  return config;
}

constexpr const char* kClassDoc =
    "The options of a training run, by name: TrainConfig(images=\"me\", max_train_steps=300).\n\n"
    "Every option has a default; the preset of the base, a YAML file, may set another one. TrainConfig.options() lists "
    "them with type, range, unit, meaning and the values of the presets; preset_values() gives those that are in use. "
    "Attributes read and set options; a list or dict that is read is a copy, and changes the option once it is "
    "assigned: config.report_to = [*config.report_to, \"wandb\"]. An unknown name (the nearest one is named), a wrong "
    "type or a value out of range raises ConfigError, whose .problems has all of them.";

}  // namespace

void register_config(py::module_& module) {
  py::class_<TrainConfig>(module, "TrainConfig", kClassDoc)
      .def(py::init([](const py::kwargs& options) { return load({}, options); }))
      .def_static("from_yaml", &load, py::arg("path"),
                  "Reads a YAML file of option names; keywords win over it. Raises ConfigError naming file and line.")
      .def_static(
          "options", &option_list,
          "Every option as a dict: name, type, optional, default, allowed, choices, unit, group, help, aliases, "
          "placeholder, takes_mappings, secret, presets.")
      .def("to_dict", &to_dict, "All options with their values.")
      .def("preset_values", &values_in_use,
           "The values that the preset of the base set and nothing overrode, by option, as config.yaml has them.")
      .def("origins", &origins_of,
           "Where each value that differs from the built-in default came from, by option: a file with its line, "
           "\"bundled base\", or the option's own name where Python set it.")
      .def(
          "to_yaml", [](TrainConfig& config) { return python_text(config_to_yaml(config.fields(), config.origins)); },
          "The text of a YAML file that from_yaml reads back, with where each value came from as a comment.")
      .def("__getattr__", &get_option, py::arg("name"))
      .def("__setattr__", &set_option, py::arg("name"), py::arg("value"))
      .def("__copy__", [](const TrainConfig& config) { return TrainConfig(config); })
      .def("__dir__", &names_of)
      .def(
          "__eq__", [](TrainConfig& one, TrainConfig& other) { return to_dict(one).equal(to_dict(other)); },
          py::is_operator())  // of anything else it says NotImplemented
      .def("__repr__",
           [](TrainConfig& config) {
             std::vector<std::string> values;
             for (const Field& field : config.fields()) {
               if (!config.origins.contains(field.info.name)) continue;  // a default
               values.push_back(field.info.name + "=" + value_shown(field));
             }
             return fmt::format("TrainConfig({})", fmt::join(values, ", "));
           })
      .def(py::pickle(&state_of, &config_of_state));
  module.def("_concept_options", &concept_options, "What an entry of concepts may hold, as TrainConfig.options().");
}

}  // namespace sdtune::python
