#include "app/commands/options_json.h"

#include <optional>

#include "model/options/option_schema.h"

namespace sdtune::app {
namespace {

Json option_json(const Field& field) {
  const FieldInfo& info = field.info;
  const auto bound = [](const std::optional<double>& number) { return number ? Json(*number) : Json(); };
  return {{"name", info.name},
          {"type", field_type(field)},
          {"optional", is_optional(field)},
          {"default", field_json(field)},
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
