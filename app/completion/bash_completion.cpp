// bash's script: tables of flags by command, and a function that reads them. It needs no package bash-completion.
#include <fmt/format.h>

#include "app/completion/shell_words.h"

namespace sdtune::app {
namespace {

// Names and aliases of the flags of that kind, with a space around each, so that ` --name ` can be looked for.
std::string names_of_kind(const ShellCommand& command, ValueKind kind) {
  std::string text = " ";
  for (const ShellFlag& flag : command.flags) {
    if (flag.value.kind != kind) continue;
    text += flag.name + " ";
    for (const std::string& alias : flag.aliases) text += alias + " ";
  }
  return text;
}

std::string offered_flags(const ShellCommand& command) {
  std::vector<std::string> names;
  for (const ShellFlag& flag : command.flags) {
    names.push_back(flag.name);
    if (flag.value.kind == ValueKind::kNone && !denial_of(flag).empty()) names.push_back(denial_of(flag));
  }
  return joined_words(names);
}

std::string kind_word(ValueKind kind) {
  return kind == ValueKind::kFile ? "file" : kind == ValueKind::kFolder ? "folder" : "text";
}

// The kinds of the words that are no flags, and what one of them may be.
std::string bash_words(const ShellCommand& command) {
  std::vector<std::string> words;
  for (const ShellValue& value : command.positionals) {
    words.push_back(value.kind == ValueKind::kChoice ? joined_words(value.choices, "|") : kind_word(value.kind));
  }
  return joined_words(words);
}

std::string bash_table(const ShellCommand& command) {
  return fmt::format(
      "    {})\n      flags='{}'\n      texts='{}'\n      files='{}'\n      folders='{}'\n      words='{}'\n      ;;\n",
      command.name, offered_flags(command), names_of_kind(command, ValueKind::kText),
      names_of_kind(command, ValueKind::kFile), names_of_kind(command, ValueKind::kFolder), bash_words(command));
}

// A line for each flag with choices: "train --method") choices='full lora' ;;
std::string bash_choices(const ShellCommand& command) {
  std::string text;
  for (const ShellFlag& flag : command.flags) {
    if (flag.value.kind != ValueKind::kChoice) continue;
    std::string patterns = fmt::format("'{} {}'", command.name, flag.name);
    for (const std::string& alias : flag.aliases) patterns += fmt::format("|'{} {}'", command.name, alias);
    text += fmt::format("    {}) choices='{}' ;;\n", patterns, joined_words(flag.value.choices));
  }
  return text;
}

// The command whose words are completed: behind `--` another one.
std::string bash_rest(const std::vector<ShellCommand>& commands) {
  std::string text;
  for (const ShellCommand& command : commands) {
    if (!command.takes_command) continue;
    const std::string inner = command.rest_of.empty() ? "first=$((i + 1)) command=${COMP_WORDS[i + 1]}"
                                                      : "first=$i command=" + command.rest_of;
    text += fmt::format("        {}) {} ;;\n", command.name, inner);
  }
  return text;
}

constexpr const char* kBashFunctions = R"(
_sdtune_paths() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}

_sdtune_offer() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_sdtune() {
  local current=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]} first=1 i=0 number=0 kind='' flags='' texts='' files='' folders='' words='' choices=''
  # '=' is a word of its own to bash.
  if [[ $current == = ]]; then
    current=''
  elif [[ $flag == = ]]; then
    flag=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 2; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      case $command in
@REST@      esac
      break
    fi
  done
  if ((COMP_CWORD == first)); then
    _sdtune_offer "$_sdtune_commands" "$current"
    return
  fi
  _sdtune_flags "$command"
  flag=${flag//_/-}
  _sdtune_choices "$command $flag"
  if [[ $flag == --* && $flag != -- ]]; then
    if [[ -n $choices ]]; then
      _sdtune_offer "$choices" "$current"
      return
    elif [[ $files == *" $flag "* ]]; then
      _sdtune_paths -f "$current"
      return
    elif [[ $folders == *" $flag "* ]]; then
      _sdtune_paths -d "$current"
      return
    elif [[ $texts == *" $flag "* ]]; then
      return
    fi
  fi
  if [[ -n $words && $current != -* ]]; then
    for ((i = first + 1; i < COMP_CWORD; i++)); do
      [[ ${COMP_WORDS[i]} == -* ]] || ((number += 1))
    done
    for kind in $words; do
      ((number == 0)) && break
      ((number -= 1))
      kind=''
    done
    case $kind in
      file) _sdtune_paths -f "$current" ;;
      folder) _sdtune_paths -d "$current" ;;
      text | '') ;;
      *) _sdtune_offer "${kind//|/ }" "$current" ;;
    esac
    return
  fi
  _sdtune_offer "$flags" "$current"
}

complete -F _sdtune sdtune
)";

}  // namespace

std::string bash_completion(const std::vector<ShellCommand>& commands) {
  std::vector<std::string> names;
  std::string tables, choices;
  for (const ShellCommand& command : commands) {
    names.push_back(command.name);
    tables += bash_table(command);
    choices += bash_choices(command);
  }
  std::string functions = kBashFunctions;
  const std::string mark = "@REST@";
  functions.replace(functions.find(mark), mark.size(), bash_rest(commands));
  return fmt::format(
             "# Completion of sdtune for bash, made by `sdtune completion bash`.\n_sdtune_commands='{} --help "
             "--version'\n\n",
             joined_words(names)) +
         "_sdtune_flags() {\n  case $1 in\n" + tables + "  esac\n}\n\n_sdtune_choices() {\n  case $1 in\n" + choices +
         "  esac\n}\n" + functions;
}

}  // namespace sdtune::app
