#include "app/cli/given_options.h"

namespace sdtune::app {
namespace {

// One file is read: what another one says would be left out in silence.
void refuse_further_files(const std::vector<Setting>& settings, std::vector<Problem>& problems) {
  for (const Setting& setting : settings) {
    if (setting.name != "config") continue;
    problems.push_back({setting.origin, "config is no option of a file: only --config names one", "put all into one"});
  }
}

}  // namespace

GivenOptions apply_options(const FieldList& fields, const Arguments& arguments, const std::string& config_file,
                           const std::string& word_hint) {
  GivenOptions given{{}, arguments.problems};
  for (const std::string& word : arguments.positionals) given.problems.push_back({word, "unexpected word", word_hint});
  std::vector<Problem> reported_below;
  apply_settings(fields, arguments.settings, given.origins, reported_below);
  if (!config_file.empty()) {
    const std::vector<Setting> settings = settings_from_yaml(config_file, given.problems);
    refuse_further_files(settings, given.problems);
    apply_settings(fields, settings, given.origins, given.problems);
  }
  apply_settings(fields, arguments.settings, given.origins, given.problems);
  return given;
}

}  // namespace sdtune::app
