// --help and docs/reference.md, both made from the fields.
#pragma once

#include <string>
#include <vector>

#include "model/options/field.h"
#include "model/options/preset.h"

namespace sdtune::app {

// A word that a command takes by its place: `sdtune inspect PATH`.
struct CommandWord {
  std::string name;  // "path": the argument of its Python twin
  std::string help;
};

// What is said of a command besides its options.
struct CommandHelp {
  std::string name;     // "train"
  std::string summary;  // one sentence
  std::string usage;    // "sdtune train --images DIR [options]"
  std::vector<CommandWord> words = {};
};

// For a terminal of `columns` characters: the options by group, each with default, unit and range, then what each
// preset sets (`presets` is empty for a command that does not train).
std::string help_text(const CommandHelp& command, const FieldList& fields, const std::vector<Preset>& presets,
                      int columns);

// The same as a section of docs/reference.md: a table for each group, and one of the presets. Fields that are also in
// `of_train` with the same text are left out in favour of one sentence; empty for `train` itself.
std::string reference_markdown(const CommandHelp& command, const FieldList& fields, const std::vector<Preset>& presets,
                               const FieldList& of_train);

}  // namespace sdtune::app
