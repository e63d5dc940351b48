// zsh's script: what _arguments takes, a function a command.
#include <fmt/format.h>

#include "app/completion/shell_words.h"

namespace sdtune::app {
namespace {

// Inside single quotes; brackets and colons end the parts of a specification.
std::string zsh_escaped(const std::string& text, const std::string& marks) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (c == '\\' || marks.find(c) != std::string::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(const ShellValue& value) {
  switch (value.kind) {
    case ValueKind::kChoice:
      return fmt::format("({})", joined_words(value.choices));
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kFolder:
      return "_files -/";
    default:
      return " ";
  }
}

std::string zsh_value(const ShellValue& value) {
  return fmt::format(":{}:{}", zsh_escaped(value.placeholder, ":[]"), zsh_action(value));
}

std::string zsh_flags(const ShellFlag& flag) {
  const std::string help = fmt::format("[{}]", zsh_escaped(flag.help, "[]:"));
  if (flag.value.kind != ValueKind::kNone) {
    const std::string again = flag.again ? "*" : "";
    return fmt::format("    '{}{}={}{}'\n", again, flag.name, help, zsh_value(flag.value));
  }
  const std::string denial = denial_of(flag);
  if (denial.empty()) return fmt::format("    '{}{}'\n", flag.name, help);
  return fmt::format("    '({1}){0}{2}'\n    '({0}){1}{2}'\n", flag.name, denial, help);
}

std::string zsh_function(const ShellCommand& command) {
  std::string text = fmt::format("_sdtune_{}() {{\n  local -a flags=(\n", command.name);
  for (const ShellFlag& flag : command.flags) text += zsh_flags(flag);
  for (const ShellValue& value : command.positionals) text += fmt::format("    '{}'\n", zsh_value(value));
  return text + "  )\n  _arguments $flags\n}\n\n";
}

std::string zsh_rest(const std::vector<ShellCommand>& commands) {
  std::string text;
  for (const ShellCommand& command : commands) {
    if (!command.takes_command) continue;
    text += command.rest_of.empty()
                ? fmt::format("      {}) words=(sdtune \"${{(@)words[behind + 1,-1]}}\") ;;\n", command.name)
                : fmt::format("      {}) words=(sdtune {} \"${{(@)words[behind + 1,-1]}}\"); (( moved -= 1 )) ;;\n",
                              command.name, command.rest_of);
  }
  return text;
}

// `words` and CURRENT are zsh's: the words of the line, from 1, and the one with the cursor.
constexpr const char* kZshFunctions = R"(_sdtune() {
  local curcontext=$curcontext behind moved
  (( behind = ${words[(i)--]} ))
  if (( behind < CURRENT )); then
    (( moved = behind - 1 ))
    case $words[2] in
@REST@      *) return 1 ;;
    esac
    (( CURRENT -= moved ))
  fi
  if (( CURRENT == 2 )); then
    local -a commands=(
@COMMANDS@    )
    _describe -t commands command commands
    [[ $words[CURRENT] == -* ]] && compadd -- --help --version
    return 0
  fi
  local command=$words[2]
  (( $+functions[_sdtune_$command] )) || return 1
  shift words
  (( CURRENT -= 1 ))
  _sdtune_$command
}

if [[ $funcstack[1] == _sdtune ]]; then
  _sdtune "$@"
else
  compdef _sdtune sdtune
fi
)";

void put_zsh(std::string& text, const std::string& mark, const std::string& value) {
  text.replace(text.find(mark), mark.size(), value);
}

}  // namespace

std::string zsh_completion(const std::vector<ShellCommand>& commands) {
  std::string text = "#compdef sdtune\n# Completion of sdtune for zsh, made by `sdtune completion zsh`.\n\n";
  std::string names;
  for (const ShellCommand& command : commands) {
    text += zsh_function(command);
    names += fmt::format("      '{}:{}'\n", command.name, zsh_escaped(command.summary, ":"));
  }
  std::string functions = kZshFunctions;
  put_zsh(functions, "@REST@", zsh_rest(commands));
  put_zsh(functions, "@COMMANDS@", names);
  return text + functions;
}

}  // namespace sdtune::app
