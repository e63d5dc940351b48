#include "app/cli/given_options.h"

namespace sdtune::app {

GivenOptions apply_options(const FieldList& fields, const Arguments& arguments, const std::string& config_file,
                           const std::string& word_hint) {
  GivenOptions given{{}, arguments.problems};
  for (const std::string& word : arguments.positionals) given.problems.push_back({word, "unexpected word", word_hint});
  std::vector<Problem> reported_below;
  apply_settings(fields, arguments.settings, given.origins, reported_below);
  if (!config_file.empty()) {
    apply_settings(fields, settings_from_yaml(config_file, given.problems), given.origins, given.problems);
  }
  apply_settings(fields, arguments.settings, given.origins, given.problems);
  return given;
}

}  // namespace sdtune::app
