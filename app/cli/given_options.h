// From the words of a command line to a command's options.
#pragma once

#include <string>
#include <vector>

#include "app/cli/arguments.h"
#include "model/options/field.h"

namespace sdtune::app {

// Where each given value came from, and all that is wrong with what was given.
struct GivenOptions {
  Origins origins;
  std::vector<Problem> problems;
};

// Sets the fields: flags over the YAML file over defaults. `config_file` is the value of a field among them (--config)
// and is read once the flags have set it. The command takes no words besides: `word_hint` says what to do about one.
GivenOptions apply_options(const FieldList& fields, const Arguments& arguments, const std::string& config_file,
                           const std::string& word_hint);

}  // namespace sdtune::app
