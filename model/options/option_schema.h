// The declaration of options as JSON Schema (draft 2020-12), for editors of YAML files. What a schema refuses, sdtune
// refuses too, unless a text stands for a number or a word ("5", "True") or a key has hyphens.
#pragma once

#include <string>

#include "model/base/json.h"
#include "model/options/field.h"

namespace sdtune {

// What the schemas below refer to, for the `$defs` of the document that holds them.
Json schema_definitions();

// Of the value that a YAML file gives an option. `item` is the schema of an item of a list that takes mappings.
Json option_schema(const Field& field, const Json& item);

// The value as JSON: a number, a text, true, a list; null where it is unset, and for a secret.
Json field_json(const Field& field);

// Of a mapping of these options: each by its name and by its aliases, which are marked as deprecated; no option by two
// names, and no other key.
Json options_schema(const FieldList& fields, const Json& item);

}  // namespace sdtune
