// The words of a command line as settings. Names come from the fields alone; CLI11 splits the words.
#pragma once

#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/options/field.h"
#include "model/options/settings.h"

namespace sdtune::app {

struct Arguments {
  std::vector<Setting> settings;
  std::vector<std::string> positionals;
  std::vector<Problem> problems;  // unknown flags, missing values: all of them
  bool help = false;
  std::vector<std::string> command;  // the words behind `--`, for a command that takes a command
};

// Each field is a flag --its-name (also --its_name, and its aliases). A bool may stand alone (true), take a value, or
// be denied by --no-its-name; a list is a flag given several times; of any other flag given twice the last one counts.
// `words` are what follows the command's name.
Arguments parse_arguments(const std::vector<std::string>& words, const FieldList& fields);

// The settings of these fields, taken out of `arguments`; the rest stay.
std::vector<Setting> take_settings(Arguments& arguments, const FieldList& fields);

}  // namespace sdtune::app
