// `sdtune completion SHELL`.
#include <cstdio>

#include "app/commands/command.h"
#include "app/completion/shell_words.h"
#include "model/base/error.h"

namespace sdtune::app {
namespace {

class CompletionCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"completion", "Prints a script that completes sdtune's commands and options in a shell.",
            "sdtune completion bash|zsh|fish"};
  }
  FieldList fields() override { return {}; }
  std::vector<std::string> positionals() const override { return {"bash|zsh|fish"}; }

  int run(Arguments arguments) override {
    std::vector<Problem>& problems = arguments.problems;
    if (arguments.positionals.size() != 1) {
      problems.push_back(
          {"completion",
           "takes one shell (got " + std::to_string(arguments.positionals.size()) + " words; allowed: bash, zsh, fish)",
           ""});
    }
    if (!problems.empty()) throw ConfigError(problems);
    std::fputs(script(arguments.positionals.front()).c_str(), stdout);
    return 0;
  }

 private:
  static std::string script(const std::string& shell) {
    const std::vector<ShellCommand> commands = shell_commands(make_commands());
    if (shell == "bash") return bash_completion(commands);
    if (shell == "zsh") return zsh_completion(commands);
    if (shell == "fish") return fish_completion(commands);
    throw ConfigError(shell, "unknown shell (allowed: bash, zsh, fish)");
  }
};

}  // namespace

std::unique_ptr<Command> make_completion_command() {
  return std::make_unique<CompletionCommand>();
}

}  // namespace sdtune::app
