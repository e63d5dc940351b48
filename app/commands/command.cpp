#include "app/commands/command.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "app/ui/terminal.h"
#include "model/base/error.h"
#include "model/core/libtorch_version.h"
#include "model/core/tensor_memory.h"
#include "model/machine/processor_table.h"

namespace sdtune::app {
namespace {

std::string program_help(const std::vector<std::unique_ptr<Command>>& commands) {
  std::string text =
      "sdtune: fine-tunes Stable Diffusion on a few photos, and generates images.\n\nusage: sdtune COMMAND "
      "[options]\n\n";
  for (const auto& command : commands) {
    if (command->hidden()) continue;
    std::string name = "  " + command->help().name;
    name.resize(16, ' ');
    text += name + command->help().summary + "\n";
  }
  return text + "\nsdtune COMMAND --help lists a command's options. --version prints the version.\n";
}

[[noreturn]] void refuse_command(const std::string& word, const std::vector<std::unique_ptr<Command>>& commands) {
  std::vector<std::string> names;
  for (const auto& command : commands) {
    if (!command->hidden()) names.push_back(command->help().name);
  }
  const std::string list = fmt::format("{}", fmt::join(names, ", "));
  const std::string near = nearest_name(word, names);
  throw ConfigError(word, "unknown command (allowed: " + list + ")", near.empty() ? "" : "did you mean " + near + "?");
}

}  // namespace

std::vector<std::unique_ptr<Command>> make_commands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(make_train_command());
  commands.push_back(make_sample_command());
  commands.push_back(make_demo_command());
  commands.push_back(make_check_command());
  commands.push_back(make_doctor_command());
  commands.push_back(make_prepare_command());
  commands.push_back(make_plan_command());
  commands.push_back(make_prove_command());
  commands.push_back(make_prove_piece_command());
  commands.push_back(make_inspect_command());
  commands.push_back(make_render_command());
  commands.push_back(make_pretrain_command());
  commands.push_back(make_eval_command());
  commands.push_back(make_convert_command());
  commands.push_back(make_merge_command());
  commands.push_back(make_fetch_command());
  commands.push_back(make_push_command());
  commands.push_back(make_tune_machine_command());
  commands.push_back(make_launch_command());
  commands.push_back(make_schema_command());
  commands.push_back(make_completion_command());
  commands.push_back(make_reference_command());
  return commands;
}

int run_command_line(const std::vector<std::string>& words) {
  const std::vector<std::unique_ptr<Command>> commands = make_commands();
  const std::string first = words.empty() ? "--help" : words.front();
  if (first == "--version") {
    std::puts("sdtune " SDTUNE_VERSION);
    return 0;
  }
  if (first == "help" && words.size() > 1) return run_command_line({words[1], "--help"});
  if (first == "--help" || first == "-h" || first == "help") {
    std::fputs(program_help(commands).c_str(), stdout);
    return words.empty() ? static_cast<int>(ExitCode::kBadInput) : 0;
  }
  model::check_loaded_libtorch();
  const model::TensorMemoryScope memory;
  model::take_implementation_from_table();
  for (const auto& command : commands) {
    if (command->help().name != first) continue;
    const FieldList fields = command->fields();
    auto end = words.end();
    if (command->takes_command()) end = std::find(words.begin() + 1, words.end(), "--");
    Arguments arguments = parse_arguments({words.begin() + 1, end}, fields);
    if (end != words.end()) arguments.command.assign(end + 1, words.end());
    if (!arguments.help) return command->run(std::move(arguments));
    std::fputs(help_text(command->help(), fields, command->presets(), terminal_columns(stdout)).c_str(), stdout);
    return 0;
  }
  refuse_command(first, commands);
}

}  // namespace sdtune::app
