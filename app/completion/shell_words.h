// What a shell completes after `sdtune`, made from the declarations of the commands.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/commands/command.h"

namespace sdtune::app {

// What may stand for a value.
enum class ValueKind { kNone, kText, kChoice, kFile, kFolder };

struct ShellValue {
  ValueKind kind = ValueKind::kText;
  std::string placeholder;           // DIR, TEXT, ...
  std::vector<std::string> choices;  // of kChoice
};

struct ShellFlag {
  std::string name;                  // "--learning-rate"
  std::vector<std::string> aliases;  // accepted, and not offered
  std::string help;
  ShellValue value;    // kNone: a bool, which also has --no-...
  bool again = false;  // may be given several times
};

struct ShellCommand {
  std::string name;
  std::string summary;
  std::vector<ShellFlag> flags;
  std::vector<ShellValue> positionals;
  bool takes_command = false;  // the words behind `--` are a command line of sdtune
  std::string rest_of;         // or options of this command
};

// Those that help lists, in its order.
std::vector<ShellCommand> shell_commands(const std::vector<std::unique_ptr<Command>>& commands);

// "--use-ema" -> "--no-use-ema".
std::string denial_of(const ShellFlag& flag);

// "a b c"
std::string joined_words(const std::vector<std::string>& words, const char* between = " ");

// Scripts that a shell reads; each ends with a line break.
std::string bash_completion(const std::vector<ShellCommand>& commands);
std::string zsh_completion(const std::vector<ShellCommand>& commands);
std::string fish_completion(const std::vector<ShellCommand>& commands);

}  // namespace sdtune::app
