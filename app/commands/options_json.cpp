#include "app/commands/options_json.h"

#include <optional>
#include <type_traits>
#include <variant>

namespace sdtune::app {
namespace {

template <typename T>
Json value_json(const T& value) {
  return value;
}

template <typename T>
Json value_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json option_json(const Field& field) {
  const FieldInfo& info = field.info;
  const auto bound = [](const std::optional<double>& number) { return value_json(number); };
  return {{"name", info.name},
          {"type", field_type(field)},
          {"optional", is_optional(field)},
          {"default", std::visit([](const auto* value) { return value_json(*value); }, field.value)},
          {"choices", info.choices},
          {"min", bound(info.min)},
          {"max", bound(info.max)},
          {"exclusive_min", info.exclusive_min},
          {"unit", info.unit},
          {"group", info.group},
          {"help", info.help},
          {"placeholder", info.placeholder},
          {"aliases", info.aliases}};
}

}  // namespace

Json options_json(const std::vector<std::unique_ptr<Command>>& commands) {
  Json all = Json::object();
  for (const auto& command : commands) {
    if (command->hidden()) continue;
    const CommandHelp help = command->help();
    Json words = Json::array(), options = Json::array();
    for (const CommandWord& word : help.words) words.push_back({{"name", word.name}, {"help", word.help}});
    for (const Field& field : command->fields()) options.push_back(option_json(field));
    all[help.name] = {{"summary", help.summary}, {"usage", help.usage}, {"words", words}, {"options", options}};
  }
  return all;
}

}  // namespace sdtune::app
