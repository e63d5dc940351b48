#include "app/completion/shell_words.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace sdtune::app {
namespace {

std::vector<std::string> placeholder_parts(const std::string& placeholder) {
  std::vector<std::string> parts;
  std::istringstream text(placeholder);
  for (std::string part; std::getline(text, part, '|');) parts.push_back(part.substr(0, part.find('[')));
  return parts;
}

bool is_lower_word(const std::string& part) {
  return std::all_of(part.begin(), part.end(), [](unsigned char letter) { return std::islower(letter) != 0; });
}

// From the placeholder that help shows: FILE.yaml, DIR|ORG/NAME, bash|zsh|fish.
ShellValue shell_value(const std::string& placeholder) {
  const std::vector<std::string> parts = placeholder_parts(placeholder);
  const auto any = [&](auto matches) { return std::any_of(parts.begin(), parts.end(), matches); };
  if (any([](const std::string& part) { return part.starts_with("FILE") || part == "PATH"; })) {
    return {ValueKind::kFile, placeholder, {}};
  }
  if (any([](const std::string& part) { return part == "DIR" || part == "FOLDER" || part == "RUN"; })) {
    return {ValueKind::kFolder, placeholder, {}};
  }
  if (parts.size() > 1 && std::all_of(parts.begin(), parts.end(), is_lower_word)) {
    return {ValueKind::kChoice, placeholder, parts};
  }
  return {ValueKind::kText, placeholder, {}};
}

ShellFlag shell_flag(const Field& field) {
  ShellFlag flag{flag_name(field.info.name), {}, field.info.help, shell_value(field.info.placeholder), is_list(field)};
  for (const std::string& alias : field.info.aliases) flag.aliases.push_back(flag_name(alias));
  if (is_bool(field)) flag.value = {ValueKind::kNone, "", {}};
  if (!field.info.choices.empty()) flag.value = {ValueKind::kChoice, "", field.info.choices};
  if (flag.value.placeholder.empty()) flag.value.placeholder = field.info.name;
  return flag;
}

}  // namespace

std::vector<ShellCommand> shell_commands(const std::vector<std::unique_ptr<Command>>& commands) {
  std::vector<ShellCommand> result;
  for (const auto& command : commands) {
    if (command->hidden()) continue;
    const CommandHelp help = command->help();
    ShellCommand shown{help.name, help.summary, {}, {}, command->takes_command(), command->rest_of()};
    for (const Field& field : command->fields()) shown.flags.push_back(shell_flag(field));
    shown.flags.push_back({"--help", {"-h"}, "Lists the options of this command.", {ValueKind::kNone, "", {}}});
    for (const std::string& placeholder : command->positionals()) shown.positionals.push_back(shell_value(placeholder));
    result.push_back(std::move(shown));
  }
  return result;
}

std::string denial_of(const ShellFlag& flag) {
  return flag.name == "--help" ? "" : "--no-" + flag.name.substr(2);
}

std::string joined_words(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

}  // namespace sdtune::app
