// One declaration of each option. An options struct lists its fields once, in fields(); YAML, command line flags,
// --help, Python, config.yaml of a run and docs/reference.md are all made from that list.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/nearest_name.h"

namespace sdtune {

// Whether a resumed training run must have the value that its checkpoint was written with.
enum class Resume {
  kMustMatch,  // it changes the numbers: another value is refused by name
  kMayChange,  // it changes no number of a step
  kByRule,     // depends on other options too: train/resume/resume_fingerprint.cpp has the rule
};

// What is known of an option besides its value. Declare options with OptionGroup (option_group.h).
struct FieldInfo {
  std::string name;                                                   // snake_case, diffusers' name where it has one
  std::string help;                                                   // one sentence
  std::string group = "";                                             // heading in --help and the reference
  std::string unit = "";                                              // "steps", "px", "" for none
  std::optional<double> min = {};                                     // inclusive, unless exclusive_min
  std::optional<double> max = {};                                     // inclusive
  bool exclusive_min = false;                                         // the value must be above min
  std::vector<std::string> choices = {};                              // allowed strings; empty = any
  std::vector<std::string> aliases = {};                              // other accepted names
  std::string placeholder = "";                                       // what --help shows for the value: DIR, TEXT, ...
  std::vector<std::pair<std::string, std::string>> old_choices = {};  // accepted text -> the choice that it means now
  bool takes_mappings = false;        // a list whose YAML items are mappings; each becomes its JSON text
  bool in_metadata = true;            // false: has no influence on a generated image
  bool is_secret = false;             // never written to a file, a log or a message
  std::optional<Resume> resume = {};  // unset: no option of a training run
};

// Where the value lives. std::optional means "unset unless given".
using FieldPointer =
    std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*, std::optional<bool>*,
                 std::optional<std::int64_t>*, std::optional<double>*, std::optional<std::string>*>;

struct Field {
  FieldInfo info;
  FieldPointer value;
};

using FieldList = std::vector<Field>;

// Sets a field from text (a flag's value, or a YAML or JSON scalar's text). Throws ConfigError naming `where` when the
// text is not of the field's type, is NaN or infinite, is out of range, or is not among its choices. An optional field
// takes "none" (and "null", "~") as unset. A bool takes true/false/yes/no/on/off/1/0. A list becomes this one item
// (no item when the text is empty): commas are part of a prompt, so nothing is split.
void set_field(const Field& field, const std::string& text, const std::string& where);

// The same from several texts: a YAML sequence, or a flag given more than once. Only a list takes them.
void set_field(const Field& field, const std::vector<std::string>& items, const std::string& where);

// The value as it is written in YAML: quoted when a string needs it, "null" for an unset optional, [a, b] for a list,
// "" for a secret.
std::string field_text(const Field& field);

// Any text as a YAML scalar: plain where that reads back as the same string, else in double quotes.
std::string yaml_quoted(const std::string& text);

// "int", "float", "bool", "string", "list of strings"; for help and the reference.
std::string field_type(const Field& field);

// "0 < x <= 1", "one of a, b", "" : the allowed values in words.
std::string field_range(const Field& field);

bool is_optional(const Field& field);
bool is_bool(const Field& field);
bool is_list(const Field& field);

// The field of that name or alias ('-' and '_' are the same), or nullptr.
const Field* find_field(const FieldList& fields, const std::string& name);

// "learning_rate" -> "--learning-rate".
std::string flag_name(const std::string& name);

// Every name and alias, for nearest_name.
std::vector<std::string> field_names(const FieldList& fields);

}  // namespace sdtune
