#include "app/commands/training_arguments.h"

#include <filesystem>
#include <system_error>

#include "model/files/file_system.h"
#include "model/options/option_group.h"

namespace sdtune::app {
namespace {

FieldList file_fields(TrainingArguments& owner) {
  FieldList list;
  OptionGroup(list, "Run")
      .add("config", &owner.config_file,
           "YAML file with options, or the name of an installed preset; flags override it.")
      .placeholder("FILE.yaml");
  return list;
}

}  // namespace

FieldList TrainingArguments::fields(FieldList own) {
  for (const FieldList& part : {file_fields(*this), declared.fields()}) own.insert(own.end(), part.begin(), part.end());
  return own;
}

void TrainingArguments::load(Arguments& arguments, const FieldList& own) {
  std::vector<Problem> problems = arguments.problems;
  Origins unused;
  for (const FieldList& part : {own, file_fields(*this)}) {
    apply_settings(part, take_settings(arguments, part), unused, problems);
  }
  for (const std::string& word : arguments.positionals)
    problems.push_back({word, "unexpected word", "--help lists all options"});
  flags_ = take_settings(arguments, declared.fields());
  problems_of_arguments_ = std::move(problems);
  keep(train::load_train_config(config_file, flags_));
}

void TrainingArguments::load_for(const std::string& family) {
  keep(train::load_train_config_for(family, config_file, flags_));
}

// A pipe such as <(...) of a shell is empty then, and the defaults would count without a word.
void TrainingArguments::require_second_reading(std::vector<Problem>& problems) const {
  std::error_code status;
  const bool is_there = !config_file.empty() && std::filesystem::exists(config_file, status);
  if (!is_there || (is_file(config_file) && !config_file.starts_with("/dev/"))) return;
  if (std::filesystem::is_directory(config_file, status)) return;  // refused by name already
  problems.push_back({"--config", "is no file on a disk, and this command reads it twice (got " + config_file + ")",
                      "write the options into a file"});
}

void TrainingArguments::keep(train::LoadedConfig config) {
  loaded = std::move(config);
  loaded.problems.insert(loaded.problems.begin(), problems_of_arguments_.begin(), problems_of_arguments_.end());
}

}  // namespace sdtune::app
