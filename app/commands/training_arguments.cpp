#include "app/commands/training_arguments.h"

namespace sdtune::app {
namespace {

FieldList file_fields(TrainingArguments& owner) {
  FieldInfo config{.name = "config", .help = "YAML file with options; flags win over it.", .group = "Run"};
  config.placeholder = "FILE.yaml";
  return {{config, &owner.config_file}};
}

}  // namespace

FieldList TrainingArguments::fields() {
  FieldList list = file_fields(*this);
  const FieldList options = declared.fields();
  list.insert(list.end(), options.begin(), options.end());
  return list;
}

void TrainingArguments::load(Arguments& arguments) {
  std::vector<Problem> problems = arguments.problems;
  train::Origins unused;
  train::apply_settings(file_fields(*this), take_settings(arguments, file_fields(*this)), unused, problems);
  for (const std::string& word : arguments.positionals)
    problems.push_back({word, "unexpected word", "--help lists all options"});
  loaded = train::load_train_config(config_file, take_settings(arguments, declared.fields()));
  problems.insert(problems.end(), loaded.problems.begin(), loaded.problems.end());
  loaded.problems = std::move(problems);
}

}  // namespace sdtune::app
