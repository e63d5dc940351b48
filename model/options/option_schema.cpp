#include "model/options/option_schema.h"

#include <cmath>
#include <type_traits>

namespace sdtune {
namespace {

constexpr const char* kText = "#/$defs/text";

// A bound as its option writes it: 1, not 1.0.
Json number(double value) {
  const bool is_whole = std::floor(value) == value && std::abs(value) < 9e15;
  return is_whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

Json number_schema(const FieldInfo& info, const char* type) {
  Json schema = {{"type", type}};
  if (info.min) schema[info.exclusive_min ? "exclusiveMinimum" : "minimum"] = number(*info.min);
  if (info.max) schema["maximum"] = number(*info.max);
  return schema;
}

Json text_schema(const FieldInfo& info) {
  if (info.choices.empty()) return {{"$ref", kText}};
  const Json choices = {{"enum", info.choices}};
  if (info.old_choices.empty()) return choices;
  Json old = Json::array();
  for (const auto& [text, now] : info.old_choices) old.push_back(text);
  return {{"anyOf", {choices, {{"enum", old}, {"deprecated", true}}}}};
}

// One value, whatever it may be besides: a list of it, or null.
Json value_schema(const Field& field) {
  const std::string type = field_type(field);
  if (type == "bool") return {{"$ref", "#/$defs/bool"}};
  if (type == "int") return number_schema(field.info, "integer");
  if (type == "float") return number_schema(field.info, "number");
  return text_schema(field.info);
}

std::string description(const FieldInfo& info) {
  return info.unit.empty() ? info.help : info.help + " Unit: " + info.unit + ".";
}

Json alias_schema(const std::string& name) {
  return {{"$ref", "#/properties/" + name}, {"description", "Another name of " + name + "."}, {"deprecated", true}};
}

// Of two names of an option at most one.
void refuse_two_names(const FieldInfo& info, Json& rules) {
  std::vector<std::string> names = {info.name};
  names.insert(names.end(), info.aliases.begin(), info.aliases.end());
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t k = i + 1; k < names.size(); ++k) {
      rules.push_back({{"not", {{"type", "object"}, {"required", {names[i], names[k]}}}}});
    }
  }
}

}  // namespace

Json schema_definitions() {
  const Json bools = {{"anyOf", {{{"type", "boolean"}}, {{"enum", {"yes", "no", "on", "off", 0, 1}}}}}};
  const Json text = {{"type", {"string", "number", "boolean"}}, {"pattern", "^[^\\u0000]*$"}};
  return {{"bool", bools}, {"text", text}};
}

Json field_json(const Field& field) {
  if (field.info.is_secret) return nullptr;
  return std::visit(
      [](const auto* value) -> Json {
        using T = std::remove_cvref_t<decltype(*value)>;
        if constexpr (requires(const T& unset) { unset.has_value(); }) {
          return value->has_value() ? Json(**value) : Json(nullptr);
        } else {
          return Json(*value);
        }
      },
      field.value);
}

Json option_schema(const Field& field, const Json& item) {
  const Json value = value_schema(field);
  Json schema = {{"description", description(field.info)}};
  if (is_list(field)) {
    const Json one = field.info.takes_mappings ? Json({{"anyOf", {item, value}}}) : value;
    schema["anyOf"] = {{{"type", "array"}, {"items", one}}, value, {{"type", "null"}}};
  } else if (is_optional(field)) {
    schema["anyOf"] = {value, {{"type", "null"}}, {{"const", "none"}}};
  } else {
    schema.update(value);
  }
  if (!field.info.is_secret) schema["default"] = field_json(field);
  schema["x-group"] = field.info.group;
  if (!field.info.unit.empty()) schema["x-unit"] = field.info.unit;
  return schema;
}

Json options_schema(const FieldList& fields, const Json& item) {
  Json properties = Json::object();
  Json rules = Json::array();
  for (const Field& field : fields) {
    properties[field.info.name] = option_schema(field, item);
    refuse_two_names(field.info, rules);
  }
  for (const Field& field : fields) {
    for (const std::string& alias : field.info.aliases) properties[alias] = alias_schema(field.info.name);
  }
  Json schema = {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (!rules.empty()) schema["allOf"] = rules;
  return schema;
}

}  // namespace sdtune
