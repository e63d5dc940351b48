// --help and docs/reference.md, both made from the fields.
#pragma once

#include <string>
#include <vector>

#include "model/base/field.h"

namespace sdtune::app {

// What is said of a command besides its options.
struct CommandHelp {
  std::string name;     // "train"
  std::string summary;  // one sentence
  std::string usage;    // "sdtune train --images DIR [options]"
};

// For a terminal of `columns` characters: the options by group, each with default, unit and range.
std::string help_text(const CommandHelp& command, const FieldList& fields, int columns);

// A section of docs/reference.md: a table for each group.
std::string reference_markdown(const CommandHelp& command, const FieldList& fields);

}  // namespace sdtune::app
