// fish's script: a line for each flag of each command.
#include <fmt/format.h>

#include "app/completion/shell_words.h"

namespace sdtune::app {
namespace {

// In single quotes, where only these two have a meaning.
std::string fish_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string fish_value(const ShellValue& value) {
  switch (value.kind) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kChoice:
      return " -x -a " + fish_quoted(joined_words(value.choices));
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kFolder:
      return " -x -a '(__fish_complete_directories (commandline -ct))'";
    case ValueKind::kText:
      return " -x";
  }
  return "";
}

std::string fish_line(const std::string& command, const std::string& name, const std::string& value,
                      const std::string& help) {
  return fmt::format("complete -c sdtune -n '__sdtune_is {}' -l {}{} -d {}\n", command, name.substr(2), value,
                     fish_quoted(help));
}

std::string fish_flags(const ShellCommand& command) {
  std::string text;
  for (const ShellFlag& flag : command.flags) {
    text += fish_line(command.name, flag.name, fish_value(flag.value), flag.help);
    const bool is_bool = flag.value.kind == ValueKind::kNone;
    if (is_bool && !denial_of(flag).empty()) text += fish_line(command.name, denial_of(flag), "", flag.help);
  }
  return text;
}

// The words that are no flags. fish does not say which of them comes, so all kinds are offered.
std::string fish_words(const ShellCommand& command) {
  std::string text;
  for (const ShellValue& value : command.positionals) {
    if (value.kind == ValueKind::kText) continue;
    const std::string part = value.kind == ValueKind::kFile ? " -F" : fish_value(value).substr(3);
    text += fmt::format("complete -c sdtune -n '__sdtune_is {}' {}\n", command.name, part);
  }
  return text;
}

// Behind `--` fish completes no flags of its own, so they are offered as words.
std::string fish_rest(const ShellCommand& command, const std::vector<ShellCommand>& commands) {
  std::string text;
  for (const ShellCommand& other : commands) {
    const bool is_open = command.rest_of.empty() ? other.name == "train" : other.name == command.rest_of;
    if (!is_open) continue;
    std::vector<std::string> names;
    for (const ShellFlag& flag : other.flags) names.push_back(flag.name);
    text += fmt::format("complete -c sdtune -n '__sdtune_behind {}' -a {}\n", command.name,
                        fish_quoted(joined_words(names)));
  }
  return text;
}

constexpr const char* kFishFunctions = R"(
# The command that is completed; nothing before the first word, and behind `--`.
function __sdtune_command
    set -l words (commandline -opc)
    contains -- -- $words; and return 1
    set -q words[2]; or return 1
    echo $words[2]
end
function __sdtune_is
    test (__sdtune_command; or echo none) = $argv[1]
end
function __sdtune_behind
    set -l words (commandline -opc)
    contains -- -- $words; and test "$words[2]" = $argv[1]
end
function __sdtune_first
    test (count (commandline -opc)) -eq 1
end

complete -c sdtune -e
complete -c sdtune -f
complete -c sdtune -n __sdtune_first -l help -d 'Lists the commands.'
complete -c sdtune -n __sdtune_first -l version -d 'Prints the version.'
)";

}  // namespace

std::string fish_completion(const std::vector<ShellCommand>& commands) {
  std::string text = "# Completion of sdtune for fish, made by `sdtune completion fish`.";
  text += kFishFunctions;
  for (const ShellCommand& command : commands) {
    text +=
        fmt::format("complete -c sdtune -n __sdtune_first -a {} -d {}\n", command.name, fish_quoted(command.summary));
  }
  for (const ShellCommand& command : commands) {
    text += fish_flags(command) + fish_words(command);
    if (command.takes_command) text += fish_rest(command, commands);
  }
  return text;
}

}  // namespace sdtune::app
