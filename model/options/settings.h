// Values as they were given, before they become options: each remembers where it came from, so that an error names the
// flag or file:line, and config.yaml of a run says why a value is what it is.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/options/field.h"

namespace sdtune {

// One given value.
struct Setting {
  std::string name;                // as written: kebab or underscore, name or alias
  std::vector<std::string> items;  // the value's texts: one, unless it is a list
  bool is_null = false;            // YAML's null, or nothing after the colon
  bool is_list = false;            // written as a YAML sequence or as a flag given more than once
  std::string origin;              // "--learning-rate", "me.yaml:12"
  bool has_mappings = false;       // an item was a YAML mapping, and is its JSON text here
};

// Field name -> where its value came from. A field that is not in it has its default.
using Origins = std::map<std::string, std::string>;

// The settings of one YAML file: a flat mapping of option names. What is wrong goes to `problems`; a file that is not
// YAML at all gives no settings and one problem.
std::vector<Setting> settings_from_yaml(const std::filesystem::path& file, std::vector<Problem>& problems);

// Sets the fields in the order of the settings, later ones win. Unknown names (with the nearest known one) and bad
// values go to `problems`, all of them; the field of a bad value keeps what it had.
void apply_settings(const FieldList& fields, const std::vector<Setting>& settings, Origins& origins,
                    std::vector<Problem>& problems);

// What to say of a name that no field has: the nearest known one, or why sdtune does not have it on purpose.
Problem unknown_setting(const Setting& setting, const FieldList& fields);

// The text of a config.yaml: every field with its value, and its origin as a comment, grouped as in --help. Reads back
// through settings_from_yaml to the same values.
std::string config_to_yaml(const FieldList& fields, const Origins& origins);

}  // namespace sdtune
