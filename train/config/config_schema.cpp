#include "train/config/config_schema.h"

#include "model/options/option_schema.h"
#include "train/config/concept_options.h"
#include "train/config/train_config.h"

namespace sdtune::train {

namespace {

// An entry of `concepts`. null is as good as leaving a key out, and what is left out comes from the file's own options.
Json concept_schema() {
  ConceptOptions subject;
  Json schema = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  Json folder_names = Json::array();
  for (const Field& field : subject.fields()) {
    Json entry = option_schema(field, {});
    const Json description = entry["description"];
    for (const char* not_here : {"description", "default", "x-group"}) entry.erase(not_here);
    const bool is_folder = field.info.name == "images";
    const Json value = is_folder ? entry : Json({{"anyOf", {entry, {{"type", "null"}}}}});
    std::vector<std::string> names = {field.info.name};
    names.insert(names.end(), field.info.aliases.begin(), field.info.aliases.end());
    for (const std::string& name : names) {
      schema["properties"][name] = {{"description", description}};
      schema["properties"][name].update(value);
      if (is_folder) folder_names.push_back({{"required", {name}}});
    }
  }
  schema["anyOf"] = folder_names;  // the folder of its photos is what every entry has
  return schema;
}

}  // namespace

Json config_schema() {
  TrainConfig defaults;
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "Configuration of sdtune train"},
                 {"description", "Made by `sdtune schema` from the declarations in the sources."}};
  schema.update(options_schema(defaults.fields(), {{"$ref", "#/$defs/concept"}}));
  schema["type"] = {"object", "null"};
  schema["$defs"] = schema_definitions();
  schema["$defs"]["concept"] = concept_schema();
  return schema;
}

}  // namespace sdtune::train
