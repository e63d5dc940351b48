#include "app/cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

namespace sdtune::app {
namespace {

// "--learning-rate,--learning_rate" and the same for each alias.
std::string spellings(const FieldInfo& info, const std::string& prefix) {
  std::vector<std::string> names = {info.name};
  names.insert(names.end(), info.aliases.begin(), info.aliases.end());
  std::string text;
  for (const std::string& name : names) {
    const std::string kebab = flag_name(prefix + name);
    std::string underscore = kebab.substr(2);
    std::replace(underscore.begin(), underscore.end(), '-', '_');
    text += (text.empty() ? "" : ",") + kebab;
    if ("--" + underscore != kebab) text += ",--" + underscore;
  }
  return text;
}

bool looks_like_flag(const std::string& word) {
  return word.size() > 2 && word.starts_with("--");
}

// "--seed=3" -> "seed".
std::string flag_part(const std::string& word) {
  return word.substr(2, word.find('=') - 2);
}

const Field* field_of_flag(const FieldList& fields, const std::string& word) {
  return looks_like_flag(word) ? find_field(fields, flag_part(word)) : nullptr;
}

// Whether it is a flag that must not pass for the value of the one before: a field's, --no-... of a bool, --help.
bool is_flag(const FieldList& fields, const std::string& word) {
  if (!looks_like_flag(word)) return false;
  const std::string name = flag_part(word);
  const Field* denied = same_name(name.substr(0, 3), "no-") ? find_field(fields, name.substr(3)) : nullptr;
  return name == "help" || field_of_flag(fields, word) != nullptr || (denied != nullptr && is_bool(*denied));
}

// The words without the flags that lack a value, each of which is a problem: in `--prompt --steps 5` the next flag
// would be swallowed as the text. The other words still count, since a command may need them to say that it ended.
std::vector<std::string> without_valueless_flags(const std::vector<std::string>& words, const FieldList& fields,
                                                 std::vector<Problem>& problems) {
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Field* field = field_of_flag(fields, words[i]);
    if (field == nullptr || is_bool(*field) || words[i].find('=') != std::string::npos) {
      rest.push_back(words[i]);
      continue;
    }
    const std::string flag = flag_name(field->info.name);
    if (i + 1 == words.size()) {
      problems.push_back({flag, "has no value (allowed: " + field_type(*field) + ")", ""});
    } else if (is_flag(fields, words[i + 1])) {
      problems.push_back(
          {flag, "has no value: " + words[i + 1] + " follows", "for that text write " + flag + "=" + words[i + 1]});
    } else {
      rest.push_back(words[i]);
      rest.push_back(words[++i]);
    }
  }
  return rest;
}

// `--prompt=` becomes `--prompt` and an empty text: of the first CLI11 would take the next word for the value.
std::vector<std::string> with_empty_values(const std::vector<std::string>& words, const FieldList& fields) {
  std::vector<std::string> result;
  for (const std::string& word : words) {
    const bool is_empty = word.find('=') + 1 == word.size() && field_of_flag(fields, word) != nullptr;
    result.push_back(is_empty ? word.substr(0, word.size() - 1) : word);
    if (is_empty) result.emplace_back();
  }
  return result;
}

// What CLI11 did not know. The word after an unknown flag is taken for its value, so one slip gives one line.
void sort_extras(const std::vector<std::string>& extras, const FieldList& fields, Arguments& arguments) {
  for (std::size_t i = 0; i < extras.size(); ++i) {
    const std::string& word = extras[i];
    if (!looks_like_flag(word)) {
      if (word.size() > 1 && word[0] == '-') {
        arguments.problems.push_back({word, "unknown option", "--help lists all options"});
      } else {
        arguments.positionals.push_back(word);
      }
      continue;
    }
    const std::string name = flag_part(word);
    arguments.problems.push_back(unknown_setting({name, {}, false, false, "--" + name}, fields));
    const bool has_value = word.find('=') == std::string::npos && i + 1 < extras.size() && extras[i + 1][0] != '-';
    if (has_value) ++i;
  }
}

// CLI11's view of one field.
struct Flag {
  const Field* field;
  CLI::Option* option;
  CLI::Option* denial;  // --no-..., of a bool
};

Flag add_flag(CLI::App& parser, const Field& field) {
  Flag flag{&field, parser.add_option(spellings(field.info, "")), nullptr};
  flag.option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
  if (is_bool(field)) {
    flag.option->expected(0, 1)->default_str("true");
    flag.denial = parser.add_flag(spellings(field.info, "no-"));
  } else {
    flag.option->expected(1);
  }
  return flag;
}

void collect(const Flag& flag, Arguments& arguments) {
  const std::string name = flag_name(flag.field->info.name);
  const std::string denial = flag_name("no-" + flag.field->info.name);
  const bool denied = flag.denial != nullptr && flag.denial->count() > 0;
  if (denied && flag.option->count() > 0) {
    arguments.problems.push_back({name, "is given together with " + denial, ""});
    return;
  }
  const std::vector<std::string> values = denied ? flag.denial->results() : std::vector<std::string>();
  // CLI11's word for a flag without a value; --no-x=false would else mean the same as --no-x.
  const auto value = std::find_if(values.begin(), values.end(), [](const std::string& text) { return text != "true"; });
  if (value != values.end()) {
    arguments.problems.push_back(
        {denial, "takes no value (got " + *value + ")", "leave it out, or give it to " + name});
    return;
  }
  Setting setting{flag.field->info.name, {}, false, false, name};
  if (denied) {
    setting.items = {"false"};
  } else if (flag.option->count() > 0) {
    setting.items = flag.option->results();
    setting.is_list = is_list(*flag.field);
    if (!setting.is_list) setting.items = {setting.items.back()};
  }
  if (!setting.items.empty()) arguments.settings.push_back(std::move(setting));
}

}  // namespace

Arguments parse_arguments(const std::vector<std::string>& words, const FieldList& fields) {
  Arguments arguments;
  CLI::App parser;
  parser.set_help_flag("");
  parser.allow_extras();
  parser.add_flag("-h,--help", arguments.help);
  std::vector<Flag> flags;
  for (const Field& field : fields) flags.push_back(add_flag(parser, field));
  const std::vector<std::string> complete =
      with_empty_values(without_valueless_flags(words, fields, arguments.problems), fields);
  try {
    parser.parse(std::vector<std::string>(complete.rbegin(), complete.rend()));  // CLI11 wants them backwards
  } catch (const CLI::ParseError& error) {
    arguments.problems.push_back({"", error.what(), "--help lists all options"});
    return arguments;
  }
  sort_extras(parser.remaining(), fields, arguments);
  for (const Flag& flag : flags) collect(flag, arguments);
  return arguments;
}

std::vector<Setting> take_settings(Arguments& arguments, const FieldList& fields) {
  std::vector<Setting> taken;
  std::vector<Setting> rest;
  for (Setting& setting : arguments.settings) {
    (find_field(fields, setting.name) != nullptr ? taken : rest).push_back(std::move(setting));
  }
  arguments.settings = std::move(rest);
  return taken;
}

}  // namespace sdtune::app
